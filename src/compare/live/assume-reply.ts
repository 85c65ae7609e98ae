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

/** An outcome that follows from V2's reply to the same record. */
export type AssumedOutcome = Assumed & {
  /** Fields whose values the assumption takes from V2, so that comparing them proves nothing. */
  readonly equivalences: readonly FieldEquivalence[]
}

type Assumed =
  | { readonly kind: 'accepted'; readonly reply: V3Reply }
  | { readonly kind: 'refused'; readonly status: number; readonly errors: readonly Members[] }
  | { readonly kind: 'fault' }
  /** V2's reply allows no conclusion about V3: V2 failed, reached a limit, or rejected the credentials. */
  | { readonly kind: 'unknown' }

/**
 * Derives V3's answer from V2's part. If V2 accepted the record, V3 is assumed to echo what the adapter sends, with V2's values for members
 * that only the service knows (`servers-own-value`) and that have a valid form. If V2 refused it, V3 is assumed to refuse it for the same
 * reasons (`assumed-refusal`).
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
    // V3 echoes values that the client set.
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

/** Returns a fixed id, since no client receives these replies. */
const newId = (): string => '00000000-0000-4000-8000-000000000000'

/** Builds the part that the adapter would have written for this outcome, or returns `undefined` if the outcome is unknown. */
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
      // If V2 returned a null process name, the record must have it too, or `toReplyPart` falls back to the posted name.
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

/** Builds the batch reply that the adapter would have sent, with the encoder for real replies. `parts` has the order of the records. */
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

/** Keeps the codes and messages of V2. */
function toUpstreamError(status: number, errors: readonly Members[]) {
  const text = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)
  const entries = errors.map((own) => ({
    code: text(own['ErrorCode']),
    message: text(own['Message']) ?? '',
    target: text(own['ResourceIdentifier']),
  }))
  return { status, form: 'odata' as const, entries }
}

/** Matches parts by Content-ID if the ids are complete and unique, and otherwise by position, as a client would. */
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
