import type { DecodedReply } from '../../v2/index.ts'
import { formatGivenText } from '../text-table.ts'
import type { ReplyEnd } from './post-batch.ts'

/** The outcome of one record, as its part states it. */
export interface Outcome {
  readonly part: number
  readonly contentId: string | null
  readonly status: number
  /** The id that the service assigned; null for a record that was not accepted. */
  readonly externalId: string | null
  readonly errors: readonly { readonly code: string; readonly message: string }[]
}

/** The result of a reply that has ended. */
export interface SendResult {
  readonly outcomes: readonly Outcome[]
  /** Records of the batch; undefined for one that cannot be decoded here. */
  readonly expected: number | undefined
  readonly end: ReplyEnd
}

/** Reads the part at `position`, from 1. */
export function toOutcome({ contentId, status, body }: DecodedReply, position: number): Outcome {
  const json = parseBody(body)
  const errors = Array.isArray(json)
    ? (json as { ErrorCode?: string; Message?: string }[]).map(({ ErrorCode, Message }) => ({
        code: ErrorCode ?? '',
        message: Message ?? '',
      }))
    : []
  // A partner may have its records in the d of OData V2.
  const record = isObject(json) && 'd' in json ? json.d : json
  const externalId = isObject(record) && 'ExternalID' in record ? String(record.ExternalID) : null
  return { part: position, contentId: contentId ?? null, status, externalId, errors }
}

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null

function parseBody(body: string): unknown {
  try {
    return body === '' ? null : (JSON.parse(body) as unknown)
  } catch {
    return null
  }
}

/** 0: every record was accepted; 1: at least one was not, or has no known outcome. */
export function exitStatusOf({ outcomes, expected, end }: SendResult): 0 | 1 {
  const isComplete =
    end === 'whole' && (expected === undefined ? outcomes.length > 0 : outcomes.length >= expected)
  return isComplete && outcomes.every(isAccepted) ? 0 : 1
}

/** The last lines of the output: the counts, and what to do about missing outcomes. */
export function summaryOf({ outcomes, expected, end }: SendResult): string[] {
  if (end === 'whole' && outcomes.length === 0)
    return [
      expected === 0
        ? 'The batch holds no record.'
        : 'Answered 200 without parts: the outcome of each record is hidden (the ids of header and body differ), or the batch was empty.',
    ]
  const accepted = outcomes.filter(isAccepted).length
  const counts = kinds.flatMap(([name, is]) => {
    const count = outcomes.filter((outcome) => !isAccepted(outcome) && is(outcome)).length
    return count === 0 ? [] : [`${count} ${name}`]
  })
  const detail = counts.length === 0 ? '' : `: ${counts.join(', ')}`
  const lines = [`${accepted} accepted, ${outcomes.length - accepted} not accepted${detail}`]
  const missing = expected === undefined ? undefined : expected - outcomes.length
  if (end !== 'whole' || (missing ?? 0) > 0) {
    const why = {
      whole: 'The reply has too few parts',
      'cut off': 'The reply was cut off',
      stopped: 'Stopped',
    }[end]
    const count = missing === undefined ? 'the other records' : `${missing} of ${expected ?? 0} records`
    lines.push(
      `${why}: the outcome of ${count} is unknown. Send the same batch again to get the answers: an adapter with a journal posts no record to V3 twice, but V2 may write what it has again.`,
    )
  }
  return lines
}

function isAccepted({ status }: Outcome): boolean {
  return status < 300
}

/** Kinds of outcomes that are not accepted; they do not overlap. */
const kinds: readonly (readonly [name: string, is: (outcome: Outcome) => boolean])[] = [
  ['refused', ({ status }) => status < 500],
  ['unknown', ({ status, errors }) => isUnknown(status, errors)],
  ['not applied', ({ status, errors }) => status >= 500 && !isUnknown(status, errors)],
]

function isUnknown(status: number, errors: Outcome['errors']): boolean {
  return status === 504 || errors.some(({ code }) => code === 'ADP_OUTCOME_UNKNOWN')
}

/** The head of the table whose lines `lineOf` formats; `width` is that of the Content-IDs. */
export function headOf(width: number): string {
  return `${'part'.padStart(5)}  ${'content-id'.padEnd(width)}  status  outcome`
}

export function lineOf({ part, contentId, status, externalId, errors }: Outcome, width: number): string {
  const outcome = externalId ?? errors.map(({ code, message }) => `${code} ${message}`).join(' | ')
  const id = formatGivenText(contentId ?? '-').padEnd(width)
  return `${String(part).padStart(5)}  ${id}  ${String(status).padEnd(6)}  ${formatGivenText(outcome)}`.trimEnd()
}
