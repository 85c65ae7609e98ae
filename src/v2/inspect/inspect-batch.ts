import { AdapterError } from '../../errors.ts'
import type { Steps } from '../../http/slices.ts'
import { type Batch, type BatchPart, decodeBatchInSteps, type DecodeOptions } from '../batch/decode-batch.ts'
import { defaultBatchLimits } from '../limits.ts'
import { isBoundary, readBoundary } from '../multipart/parts.ts'
import { chooseBoundary, dashLines } from '../multipart/envelope.ts'
import type { RecordFault } from '../record/decode-record.ts'
import { type Finding, inspectParts, remedies } from './inspect-parts.ts'

const LF = 0x0a
const CR = 0x0d
const STEP_LINES = 1_024
const LINE_WORK = 64
const PART_WORK = 128

/** The result of an inspection. `batch` is `undefined` if the envelope is broken, so that no record can be read. */
interface Inspection {
  readonly batch: Batch | undefined
  readonly findings: readonly Finding[]
}

/**
 * Inspects a batch offline. Reports the faults for which the adapter would refuse the batch or a record, and the deviations that only a
 * stricter server would refuse (batch-wire 1 and 3). The adapter's own decoder finds the faults, so that inspection and adapter agree.
 * Never throws for a faulty batch.
 */
export function* inspectBatchInSteps(
  bytes: Buffer,
  contentType: string | undefined,
  options?: DecodeOptions,
): Steps<Inspection> {
  const findings = [...inspectStart(bytes), ...inspectContentType(contentType)]
  let batch: Batch | undefined
  try {
    batch = yield* decodeBatchInSteps(bytes, contentType, options)
  } catch (cause) {
    if (!(cause instanceof AdapterError)) throw cause
    findings.push(...(yield* inspectBroken(bytes, contentType)), toFinding(cause))
  }
  const parts = batch?.parts ?? []
  findings.push(...(yield* inspectLineEnds(bytes, parts)))
  if (batch === undefined) return { batch, findings: inOrder(findings) }
  for (const part of parts) if (part.faults !== undefined) findings.push(...toFindings(part, part.faults))
  findings.push(...inspectIds(batch, contentType), ...(yield* inspectParts(bytes, batch)))
  return { batch, findings: inOrder(findings) }
}

function* inspectBroken(bytes: Buffer, contentType: string | undefined): Steps<Finding[]> {
  try {
    return yield* inspectDelimiters(bytes, readBoundary(contentType))
  } catch (cause) {
    // Reports nothing, because the header has no boundary that could be compared with the body.
    if (cause instanceof AdapterError) return []
    throw cause
  }
}

export function toFinding(error: AdapterError): Finding {
  const { offset, part } = error.at
  return {
    severity: 'error',
    code: error.code,
    message: error.message,
    remedy: remedies[error.code] ?? 'Send the batch in the form that the V2 interface describes.',
    ...(offset === undefined ? {} : { offset }),
    ...(part === undefined ? {} : { part }),
  }
}

/** Reports a UTF-8 byte order mark at the beginning of the body (batch-wire F3). */
function inspectStart(bytes: Buffer): Finding[] {
  if (bytes[0] !== 0xef || bytes[1] !== 0xbb || bytes[2] !== 0xbf) return []
  return [
    {
      severity: 'note',
      code: 'byteOrderMark',
      message: 'The body begins with a UTF-8 byte order mark. It is ignored.',
      remedy: 'Write the body without a byte order mark.',
      offset: 0,
    },
  ]
}

/** Reports the first line end outside the records that is not CRLF (batch-wire F1). Line ends inside a record belong to its JSON. */
function* inspectLineEnds(bytes: Buffer, parts: readonly BatchPart[]): Steps<Finding[]> {
  const bareLf = yield* findBareLf(bytes, parts)
  if (bareLf === undefined) return []
  return [
    {
      severity: 'warning',
      code: 'bareLf',
      message: 'Lines end in a bare LF. Markbridge accepts them, but the V2 service requires CRLF.',
      remedy: 'Write CRLF (0x0D 0x0A) at every line end outside the JSON.',
      offset: bareLf,
    },
  ]
}

function* findBareLf(bytes: Buffer, parts: readonly BatchPart[]): Steps<number | undefined> {
  let from = 0
  for (const { start, end } of [...parts, { start: bytes.length, end: bytes.length }]) {
    for (let at = from, lines = 1; ; lines += 1) {
      if (lines % STEP_LINES === 0) yield STEP_LINES * LINE_WORK
      const found = bytes.indexOf(LF, at)
      if (found === -1 || found >= start) break
      if (found === 0 || bytes[found - 1] !== CR) return found
      at = found + 1
    }
    yield PART_WORK
    from = end
  }
  return undefined
}

function inspectContentType(contentType: string | undefined): Finding[] {
  if (!/boundary\s*=\s*"/i.test(contentType ?? '')) return []
  return [
    {
      severity: 'note',
      code: 'quotedBoundary',
      message: 'The boundary in Content-Type is quoted, as in requests of .NET. Markbridge reads both forms.',
      remedy: 'No action is needed. Another service may require the boundary without quotes.',
    },
  ]
}

export function toFindings(
  { part, start }: Pick<BatchPart, 'part' | 'start'>,
  faults: readonly RecordFault[],
): Finding[] {
  return faults.map((fault) => ({
    severity: 'error',
    code: fault.code,
    message: fault.message,
    remedy: remedies[fault.code] ?? '',
    part,
    offset: start,
  }))
}

function inOrder(findings: readonly Finding[]): Finding[] {
  return [...findings].sort((one, other) => (one.offset ?? -1) - (other.offset ?? -1))
}

const NAMED = 3

/** Reports ids that differ between header and body: the client does not receive the outcomes (service.md 4.2; batch-wire 3, F12). */
function inspectIds(batch: Batch, contentType: string | undefined): Finding[] {
  const header = readBoundary(contentType)
  if (!batch.idsAgree) {
    return [
      {
        severity: 'warning',
        code: 'idsDiffer',
        message:
          `Content-Type names the boundary "${header}", but the body has ${namesOf(batch)}. ` +
          'Their ids differ, so the reply is a single 200 without a part for each record.',
        remedy: 'Use the same id in the header and in the body. Then every record gets its own status.',
      },
    ]
  }
  if (header === batch.boundary) return []
  return [
    {
      severity: 'note',
      code: 'boundaryIsNotOuter',
      message:
        `Content-Type names the boundary "${header}", but "${batch.boundary}" frames the body. ` +
        'The ids agree, so the batch is accepted.',
      remedy: 'Name the boundary of the first delimiter line, as RFC 2046 requires.',
    },
  ]
}

/** Reports a first delimiter whose boundary differs from the boundary in the header. This may be why the body cannot be decoded. */
function* inspectDelimiters(bytes: Buffer, boundary: string): Steps<Finding[]> {
  const first = yield* firstBoundary(bytes)
  if (first === undefined || first === boundary) return []
  return [
    {
      severity: 'warning',
      code: 'boundariesDiffer',
      message: `Content-Type names the boundary "${boundary}", but the first delimiter line of the body has the boundary "${first}".`,
      remedy: 'Name the boundary of the first delimiter line in Content-Type.',
    },
  ]
}

/** Returns a phrase such as `the boundary "b" and the changesets "c", "d"`. */
function namesOf({ boundary, changesets }: Batch): string {
  const names = changesets.slice(0, NAMED).map((name) => `"${name}"`)
  const others = changesets.length - names.length
  if (names.length === 0) return `the boundary "${boundary}"`
  const more = others > 0 ? ` and ${others} more` : ''
  return `the boundary "${boundary}" and the changeset${changesets.length === 1 ? '' : 's'} ${names.join(', ')}${more}`
}

/** A boundary that no header and no delimiter can have. */
const NO_BOUNDARY = '\u0000'

/** Guesses the boundary of a body whose header is unknown: that of the outermost closed envelope, or else that of the first delimiter. */
export function* guessBoundary(bytes: Buffer): Steps<string | undefined> {
  const from = bytes.subarray(0, 3).equals(Buffer.from('\ufeff')) ? 3 : 0
  try {
    return yield* chooseBoundary(bytes, NO_BOUNDARY, from, defaultBatchLimits)
  } catch (cause) {
    if (!(cause instanceof AdapterError)) throw cause
    return yield* firstBoundary(bytes, from)
  }
}

/** Returns the boundary of the first line that can be a delimiter, or `undefined` if there is no such line. */
function* firstBoundary(bytes: Buffer, from = 0): Steps<string | undefined> {
  for (const line of dashLines(bytes, from, bytes.length, Infinity)) {
    if (typeof line === 'number') yield line
    else {
      const boundary = line.token.replace(/--$/, '')
      if (isBoundary(boundary)) return boundary
    }
  }
  return undefined
}
