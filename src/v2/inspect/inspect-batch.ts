import { AdapterError } from '../../errors.ts'
import { SLICE_WORK, type Slices } from '../../http/slices.ts'
import type { Batch, BatchPart } from '../batch/batch.ts'
import { type DecodeOptions, openBatchDecoding } from '../batch/decode-batch.ts'
import { readBoundary } from '../multipart/boundary.ts'
import type { RecordFault } from '../record/flat-record.ts'
import type { Finding } from './finding.ts'
import { inspectDelimiters, inspectIds } from './inspect-ids.ts'
import { inspectParts } from './inspect-parts.ts'
import { remedies } from './remedies.ts'

const LF = 0x0a
const CR = 0x0d

/** The result of an inspection; `batch` is undefined if the envelope is broken. */
export interface Inspection {
  readonly batch: Batch | undefined
  /** In the order of the body. */
  readonly findings: readonly Finding[]
}

/**
 * Inspects a batch offline: faults that the adapter would refuse, and deviations that only a stricter server would
 * (batch-wire 1 and 3). The decoder is the adapter's own, so nothing is refused here or there alone. `contentType` is the header
 * that the batch would be sent with. Never throws for a bad batch.
 */
export function inspectBatch(
  bytes: Buffer,
  contentType: string | undefined,
  options: DecodeOptions = {},
): Inspection {
  const steps = inspectInSteps(bytes, contentType, options)
  let step = steps.next()
  while (step.done !== true) step = steps.next()
  return step.value
}

/** `inspectBatch` in slices, between which others are served. */
export async function inspectBatchInSlices(
  bytes: Buffer,
  contentType: string | undefined,
  options: DecodeOptions,
  slices: Slices,
): Promise<Inspection> {
  const steps = inspectInSteps(bytes, contentType, options)
  let step = steps.next()
  while (step.done !== true) {
    await slices.next()
    step = steps.next()
  }
  return step.value
}

/** Yields between two pieces of work, each of which takes a few milliseconds. */
function* inspectInSteps(
  bytes: Buffer,
  contentType: string | undefined,
  options: DecodeOptions,
): Generator<void, Inspection> {
  const findings = [...inspectStart(bytes), ...inspectContentType(contentType)]
  try {
    const decoding = openBatchDecoding(bytes, contentType, options)
    while (!decoding.advance(SLICE_WORK)) yield
    const batch = decoding.batch()
    findings.push(
      ...inspectLineEnds(bytes, batch.parts),
      ...inspectIds(batch, contentType),
      ...batch.parts.flatMap((part) => toFindings(part, part.faults ?? [])),
      ...(yield* inspectParts(bytes, batch)),
    )
    return { batch, findings: inOrder(findings) }
  } catch (cause) {
    if (!(cause instanceof AdapterError)) throw cause
    findings.push(...inspectLineEnds(bytes, []), ...inspectBroken(bytes, contentType), toFinding(cause))
    return { batch: undefined, findings: inOrder(findings) }
  }
}

/** Findings of a broken envelope besides its error. */
function inspectBroken(bytes: Buffer, contentType: string | undefined): Finding[] {
  try {
    return inspectDelimiters(bytes, readBoundary(contentType))
  } catch (cause) {
    // Without a boundary in the header there is nothing to compare.
    if (cause instanceof AdapterError) return []
    throw cause
  }
}

/** An error of the whole request as a finding. */
export function toFinding(error: AdapterError): Finding {
  const { offset, part } = error.at
  return {
    severity: 'error',
    code: error.code,
    message: error.message,
    remedy: remedies[error.code] ?? 'Send the batch as the V2 interface describes it.',
    ...(offset === undefined ? {} : { offset }),
    ...(part === undefined ? {} : { part }),
  }
}

/** Text before the first delimiter (batch-wire F3). */
function inspectStart(bytes: Buffer): Finding[] {
  if (bytes[0] !== 0xef || bytes[1] !== 0xbb || bytes[2] !== 0xbf) return []
  return [
    {
      severity: 'note',
      code: 'byteOrderMark',
      message: 'The body begins with a UTF-8 byte order mark. It is ignored.',
      remedy: 'Write the body without one.',
      offset: 0,
    },
  ]
}

/** Line ends of the framing (batch-wire F1); those inside a record are the JSON's own. */
function inspectLineEnds(bytes: Buffer, parts: readonly BatchPart[]): Finding[] {
  const bareLf = findBareLf(bytes, parts)
  if (bareLf === undefined) return []
  return [
    {
      severity: 'warning',
      code: 'bareLf',
      message: 'Lines end in a bare LF. Markbridge accepts them; the V2 service asks for CRLF.',
      remedy: 'Write CRLF (0x0D 0x0A) at every line end outside the JSON.',
      offset: bareLf,
    },
  ]
}

function findBareLf(bytes: Buffer, parts: readonly BatchPart[]): number | undefined {
  let from = 0
  for (const { start, end } of [...parts, { start: bytes.length, end: bytes.length }]) {
    for (let at = bytes.indexOf(LF, from); at !== -1 && at < start; at = bytes.indexOf(LF, at + 1)) {
      if (at === 0 || bytes[at - 1] !== CR) return at
    }
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
      message: 'The boundary in Content-Type is quoted, as .NET does it. Markbridge reads both forms.',
      remedy: 'Nothing is needed; another service may want it without quotes.',
    },
  ]
}

/** The faults of a record as findings. */
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
