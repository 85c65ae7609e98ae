import { AdapterError } from '../../errors.ts'
import { defaultBatchLimits } from '../limits.ts'
import { isBoundary } from '../multipart/boundary.ts'
import { chooseBoundary } from '../multipart/envelope.ts'

const LF = 0x0a
/** No header can name it, so no delimiter of a body is its own. */
const NO_BOUNDARY = '\u0000'
const MAX_LINE_BYTES = 256

/**
 * The boundary of a body without its header: that of the outermost closed envelope, as the decoder chooses it, else that of the
 * first delimiter line. Undefined for a body that has none.
 */
export function guessBoundary(bytes: Buffer): string | undefined {
  const from = bytes.subarray(0, 3).equals(Buffer.from('\ufeff')) ? 3 : 0
  try {
    const choosing = chooseBoundary(bytes, NO_BOUNDARY, from, defaultBatchLimits)
    for (;;) {
      const step = choosing.next()
      if (step.done === true) return step.value
    }
  } catch (cause) {
    if (!(cause instanceof AdapterError)) throw cause
    return firstBoundary(bytes, from)
  }
}

/** The boundary of the first line that can be a delimiter, opening or closing. */
export function firstBoundary(bytes: Buffer, from = 0): string | undefined {
  for (let at = bytes.indexOf('--', from); at !== -1; at = bytes.indexOf('\n--', at)) {
    const start = bytes[at] === LF ? at + 1 : at
    at = start
    if (start !== from && bytes[start - 1] !== LF) continue
    const end = bytes.indexOf(LF, start)
    const line = bytes.toString(
      'latin1',
      start + 2,
      Math.min(end === -1 ? bytes.length : end, start + MAX_LINE_BYTES),
    )
    const boundary = line.trimEnd().replace(/--$/, '')
    if (isBoundary(boundary)) return boundary
  }
  return undefined
}
