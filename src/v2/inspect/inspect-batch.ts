import { AdapterError } from '../../errors.ts'
import type { Batch, BatchPart } from '../batch/batch.ts'
import { decodeBatch } from '../batch/decode-batch.ts'
import { readBoundary } from '../multipart/boundary.ts'
import type { Finding } from './finding.ts'
import { inspectParts } from './inspect-parts.ts'
import { remedies } from './remedies.ts'

const LF = 0x0a
const CR = 0x0d

/** What an inspection found; `batch` is undefined when the envelope is broken. */
export interface Inspection {
  readonly batch: Batch | undefined
  /** In the order of the body. */
  readonly findings: readonly Finding[]
}

/**
 * Looks at a batch offline: what the adapter would refuse, and what it accepts although a stricter reader would not
 * (batch-wire 1 and 3). `contentType` is the header that the batch would be sent with. Never throws for a bad batch.
 */
export function inspectBatch(bytes: Buffer, contentType: string | undefined): Inspection {
  const findings = [...inspectStart(bytes), ...inspectContentType(contentType)]
  try {
    const batch = decodeBatch(bytes, contentType)
    findings.push(
      ...inspectLineEnds(bytes, batch.parts),
      ...inspectIds(batch, contentType),
      ...batch.parts.flatMap(inspectFaults),
      ...inspectParts(bytes, batch),
    )
    return { batch, findings: inOrder(findings) }
  } catch (cause) {
    if (!(cause instanceof AdapterError)) throw cause
    findings.push(...inspectLineEnds(bytes, []), toFinding(cause))
    return { batch: undefined, findings: inOrder(findings) }
  }
}

function toFinding(error: AdapterError): Finding {
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

/** What stands before the first delimiter (batch-wire F3). */
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

/** The id rule: a client whose ids differ never sees what became of its records (service.md 4.2; batch-wire 3, F12). */
function inspectIds(batch: Batch, contentType: string | undefined): Finding[] {
  if (!batch.idsAgree) {
    return [
      {
        severity: 'warning',
        code: 'idsDiffer',
        message:
          'The id in Content-Type is none of the ids in the body. The answer is one 200 without parts per record.',
        remedy: 'Use the same id in the header and in the body; then every record gets its own status.',
      },
    ]
  }
  if (readBoundary(contentType) === batch.boundary) return []
  return [
    {
      severity: 'note',
      code: 'boundaryIsNotOuter',
      message:
        'Content-Type names another boundary than the one that frames the body. The ids agree, so it is accepted.',
      remedy: 'Name the boundary of the first delimiter line, as RFC 2046 has it.',
    },
  ]
}

function inspectFaults(part: BatchPart): Finding[] {
  return (part.faults ?? []).map((fault) => ({
    severity: 'error',
    code: fault.code,
    message: fault.message,
    remedy: remedies[fault.code] ?? '',
    part: part.part,
    offset: part.start,
  }))
}

function inOrder(findings: readonly Finding[]): Finding[] {
  return [...findings].sort((one, other) => (one.offset ?? -1) - (other.offset ?? -1))
}
