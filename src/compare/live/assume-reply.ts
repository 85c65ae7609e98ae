import { isGuid } from '../../odata/index.ts'
import {
  createBatchEncoder,
  decodeBatchReply,
  encodeMismatch,
  type PartReply,
  type ReplyPart,
} from '../../v2/index.ts'
import type { V3Record, V3Reply } from '../../v3/record.ts'
import type { Plan, PlannedRecord } from '../../writes/plan.ts'
import { toFaultPart, toReplyPart } from '../../writes/reply.ts'
import type { WriteRequest } from '../../writes/stored-request.ts'
import { isMembers, type Members } from '../diff/values.ts'
import type { FieldEquivalence } from '../verdict.ts'
import { contentIdOf, type ReplyEnvelope } from './reply-form.ts'

/** The outcome that V3 is assumed to give, as V2's reply to the same record has it. */
export type AssumedOutcome = Assumed & {
  /** Fields that the assumption takes from V2, so that their comparison proves nothing. */
  readonly equivalences: readonly FieldEquivalence[]
}

type Assumed =
  | { readonly kind: 'accepted'; readonly reply: V3Reply }
  | { readonly kind: 'refused'; readonly status: number; readonly errors: readonly Members[] }
  /** The adapter refuses the record by itself. */
  | { readonly kind: 'fault' }
  /** V2's reply says nothing of the record that holds for V3: its own failure, a limit, credentials. */
  | { readonly kind: 'unknown' }

/**
 * Assumes what V3 would have answered, from V2's part. Accepted: V3 echoes what it would have been sent, with V2's values where only the
 * service knows them (`servers-own-value`), as long as they have a form that V3 has too. Refused: V3 refuses for the same reasons, in its
 * own form (`assumed-refusal`).
 */
export function assumeOutcome(
  { record }: PlannedRecord,
  { status }: Pick<ReplyPart, 'status'>,
  body: unknown,
  receivedMs: number,
): AssumedOutcome {
  if (record === undefined) return { kind: 'fault', equivalences: [] }
  if (status >= 200 && status < 300) return assumeAccepted(record, isMembers(body) ? body : {}, receivedMs)
  if (status < 400 || status >= 500 || [401, 403, 408, 429].includes(status))
    return { kind: 'unknown', equivalences: [] }
  const errors = Array.isArray(body) ? body.filter(isMembers) : []
  return { kind: 'refused', status, errors, equivalences: [{ rule: 'assumed-refusal', path: 'errors' }] }
}

/** Values of a mark that only the service knows, or that it is the adapter's part to choose. */
const ownValues = [
  { path: 'ExternalID', isWellFormed: isGuidText },
  { path: 'AttendableEventStart', isWellFormed: isInstant },
  { path: 'RecordedBy', isWellFormed: (value: unknown) => value === null || isGuidText(value) },
  { path: 'RecordedOn', isWellFormed: isInstant },
] as const

function assumeAccepted(record: V3Record, mark: Members, receivedMs: number): AssumedOutcome {
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

/** Ids of a reply that no client gets. */
const newId = (): string => '00000000-0000-4000-8000-000000000000'

/** The part that the adapter would have written for a record with this outcome. Undefined: the outcome is not known. */
export function buildPart(
  planned: PlannedRecord,
  outcome: AssumedOutcome,
  request: WriteRequest,
): PartReply | undefined {
  const context = { ...request, newId }
  switch (outcome.kind) {
    case 'fault':
      return toFaultPart(planned, context)
    case 'accepted': {
      // V2 shows the process that it knows, also none; a reply of V3 without one would be told as it was posted.
      const hasNone = outcome.reply.ChangeProcessName === null
      const record = planned.record && { ...planned.record, ...(hasNone && { ChangeProcessName: null }) }
      return toReplyPart({ ...planned, record }, { kind: 'accepted', reply: outcome.reply }, context)
    }
    case 'refused':
      return toReplyPart(
        planned,
        { kind: 'refused', error: toUpstreamError(outcome.status, outcome.errors) },
        context,
      )
    case 'unknown':
      return undefined
  }
}

/** The whole reply of the adapter in its form, through the encoder that writes replies. `parts` in the order of the records. */
export function buildBatchReply(
  plan: Plan,
  { layout, msgtypeResponse, recordsUrl }: WriteRequest,
  parts: readonly PartReply[],
): ReplyEnvelope {
  const toEnvelope = (text: string, contentType: string): ReplyEnvelope => ({
    status: 200,
    contentType,
    form: decodeBatchReply(Buffer.from(text), contentType),
  })
  if (!plan.outcomesShown) {
    const { contentType, body } = encodeMismatch(newId)
    return toEnvelope(body, contentType)
  }
  const encoder = createBatchEncoder(layout, newId, msgtypeResponse, recordsUrl)
  const text = parts.map((part) => encoder.part(part)).join('') + encoder.close(plan.changesets)
  return toEnvelope(text, encoder.contentType)
}

/** The refusal in the form of V3: the service's own codes and words. */
function toUpstreamError(status: number, errors: readonly Members[]) {
  const text = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)
  const entries = errors.map((own) => ({
    code: text(own['ErrorCode']),
    message: text(own['Message']) ?? '',
    target: text(own['ResourceIdentifier']),
  }))
  return { status, form: 'odata' as const, entries }
}

/** Matches by Content-ID where each record has one of its own and each part names one of them, else by position, as a client would. */
export function matchParts(records: readonly PlannedRecord[], parts: readonly ReplyPart[]) {
  const ids = records.map(({ answering }) => answering.contentId)
  const own = new Set(ids)
  const known = new Map(parts.map((form, index) => [contentIdOf(form).value, index]))
  const isById =
    known.size === parts.length &&
    own.size === ids.length &&
    ids.every((id) => id !== undefined) &&
    [...known.keys()].every((id) => id !== undefined && own.has(id))
  const matched = ids.map((id, position) => {
    const index = isById ? known.get(id) : position
    const form = index === undefined ? undefined : parts[index]
    return form === undefined ? undefined : { form, isInOrder: index === position }
  })
  return { parts: matched, extra: parts.length - matched.filter((part) => part !== undefined).length }
}
