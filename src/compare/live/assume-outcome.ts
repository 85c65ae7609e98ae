import { isGuid } from '../../odata/index.ts'
import type { ReplyPartForm } from '../../v2/index.ts'
import type { V3Record, V3Reply } from '../../v3/record.ts'
import type { PlannedRecord } from '../../writes/plan.ts'
import type { FieldEquivalence } from '../verdict.ts'
import { type FlatMark, isObject } from './flat-mark.ts'

/** The outcome that V3 is assumed to give, as V2's reply to the same record has it. */
export type AssumedOutcome = Assumed & {
  /** Fields that the assumption takes from V2, so that their comparison proves nothing. */
  readonly equivalences: readonly FieldEquivalence[]
}

type Assumed =
  | { readonly kind: 'accepted'; readonly reply: V3Reply }
  | { readonly kind: 'refused'; readonly status: number; readonly errors: readonly FlatMark[] }
  /** The adapter refuses the record by itself. */
  | { readonly kind: 'fault' }
  /** V2's reply says nothing of the record that holds for V3: its own failure, a limit, credentials. */
  | { readonly kind: 'unknown' }

/** Values of a mark that only the service knows, or that it is the adapter's part to choose. */
const ownValues = [
  { path: 'ExternalID', isWellFormed: isGuidText },
  { path: 'AttendableEventStart', isWellFormed: isInstant },
  { path: 'RecordedBy', isWellFormed: (value: unknown) => value === null || isGuidText(value) },
  { path: 'RecordedOn', isWellFormed: isInstant },
] as const

/**
 * Assumes what V3 would have answered, from V2's part. Accepted: V3 echoes what it would have been sent, with V2's values where only the
 * service knows them (`servers-own-value`), as long as they have a form that V3 has too. Refused: V3 refuses for the same reasons, in its
 * own form (`assumed-refusal`).
 */
export function assumeOutcome(
  planned: PlannedRecord,
  v2: Pick<ReplyPartForm, 'status'>,
  body: unknown,
  receivedMs: number,
): AssumedOutcome {
  const { record } = planned
  if (record === undefined) return { kind: 'fault', equivalences: [] }
  const { status } = v2
  if (status >= 200 && status < 300) return assumeAccepted(record, body, receivedMs)
  const errors = Array.isArray(body) ? body.filter(isObject) : []
  if (status < 400 || status >= 500 || [401, 403, 408, 429].includes(status))
    return { kind: 'unknown', equivalences: [] }
  return { kind: 'refused', status, errors, equivalences: [{ rule: 'assumed-refusal', path: 'errors' }] }
}

function assumeAccepted(record: V3Record, body: unknown, receivedMs: number): AssumedOutcome {
  const mark = isObject(body) ? body : {}
  const equivalences: FieldEquivalence[] = []
  const known: Record<string, unknown> = {}
  const isOwnTime = record.RecordedOn === new Date(receivedMs).toISOString()
  for (const { path, isWellFormed } of ownValues) {
    // What the client set itself is echoed.
    const isSent =
      path === 'RecordedOn' ? !isOwnTime : path !== 'ExternalID' && (record[path] ?? null) !== null
    if (isSent || !isWellFormed(mark[path])) continue
    known[path] = mark[path]
    equivalences.push({ rule: 'servers-own-value', path })
  }
  const process = mark['ChangeProcessName']
  if (process === null || typeof process === 'string') {
    known['ChangeProcessName'] = process
    if (process !== record.ChangeProcessName)
      equivalences.push({ rule: 'process-name', path: 'ChangeProcessName' })
  }
  const {
    ExternalID = UNKNOWN_ID,
    RecordedBy,
    ...rest
  } = known as {
    ExternalID?: string
    RecordedBy?: string | null
  }
  const by = typeof RecordedBy === 'string' ? { ExternalID: RecordedBy } : RecordedBy
  return { kind: 'accepted', reply: { ...rest, ExternalID, RecordedBy: by }, equivalences }
}

/** Of the form that an id has; V2 gave none. */
const UNKNOWN_ID = 'ffffffff-ffff-4fff-bfff-ffffffffffff'

function isGuidText(value: unknown): boolean {
  return typeof value === 'string' && isGuid(value)
}

function isInstant(value: unknown): boolean {
  return (
    typeof value === 'string' &&
    /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:\d\d)?$/.test(value)
  )
}
