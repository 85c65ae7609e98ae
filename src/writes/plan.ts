import { AdapterError } from '../errors.ts'
import { runInSlices, type Slices } from '../http/slices.ts'
import type { NewBatch, StoredBatch } from '../journal/index.ts'
import { toV3Record } from '../translate/index.ts'
import {
  type BatchLimits,
  type BatchPart,
  decodeBatchInSteps,
  decodeRecordBytes,
  type FlatRecord,
  noBatchLimits,
  type RecordFault,
  readBoundary,
  readPreferences,
} from '../v2/index.ts'
import type { V3Record } from '../v3/index.ts'
import type { Partner } from '../partners/partner.ts'
import {
  type BatchIds,
  decodeStoredRequest,
  digestIds,
  digestRequest,
  type StoredRequest,
  type WriteRequest,
} from './stored-request.ts'

/** The cost of planning one record, in bytes of a batch. */
const PLAN_WORK = 512

/** How one record asks to be answered. */
export type PartPreferences = Pick<
  BatchPart,
  'contentId' | 'contentIdInHttp' | 'changeset' | 'prefersMinimal' | 'metadata'
>

/** A record that will be posted, or why it is refused without being posted. */
export interface PlannedRecord {
  readonly answering: PartPreferences
  /** The V3 record; undefined exactly when `faults` is defined. Its JSON is written when it is posted, not held for all. */
  readonly record: V3Record | undefined
  readonly faults: readonly RecordFault[] | undefined
  /** Records with the same key are sent one after another; empty for a record that cannot be read. */
  readonly key: string
}

/** A write request that was read and planned. */
export interface PlannedRequest {
  readonly request: WriteRequest
  readonly body: Buffer
  /** Milliseconds since the epoch. */
  readonly receivedMs: number
  readonly plan: Plan
  readonly slices: Slices
}

/** The records that a request posts. */
export interface Plan {
  readonly records: readonly PlannedRecord[]
  /** When its records count as received, ms since the epoch; `RecordedOn` of each that brings no time of its own. */
  readonly markedMs: number
  /** Members of records that were left out. */
  readonly unmappedFields: number
  /** Members of records in another form than JSON's, which V2's parser reads as well. */
  readonly convertedFields: number
  readonly changesets: number
  /** False when the ids of header and body differ: the client gets a single 200, whatever happens (batch-wire 3). */
  readonly outcomesShown: boolean
  /** The ids that the client gave its batch; undefined: it gave none. */
  readonly ids: BatchIds | undefined
}

/**
 * Decodes a whole write request and plans the post of each record; posts nothing. `receivedMs` becomes the time of the marks whose records bring none. Errors as `decodeBatch`, for an envelope of which nothing may be posted.
 */
export async function planWrites(
  request: WriteRequest,
  body: Buffer,
  partner: Partner,
  receivedMs: number,
  limits: BatchLimits,
  slices: Slices,
): Promise<Plan> {
  const recordedOn = new Date(receivedMs).toISOString()
  if (request.kind === 'record') return planSingle(request, body, partner, receivedMs, limits)
  const steps = decodeBatchInSteps(body, request.contentType, {
    limits,
    ...(request.serviceHosts === undefined ? {} : { serviceHosts: new Set(request.serviceHosts) }),
  })
  const batch = await runInSlices(steps, slices)
  let unmappedFields = 0
  let convertedFields = 0
  const records: PlannedRecord[] = []
  for (const part of batch.parts) {
    const planned = planRecord(part, part.record, part.faults, partner, recordedOn)
    unmappedFields += planned.unmapped
    convertedFields += part.record?.converted ?? 0
    records.push(planned.record)
    if (slices.spend(PLAN_WORK)) await slices.next()
  }
  return {
    records,
    markedMs: receivedMs,
    unmappedFields,
    convertedFields,
    changesets: batch.changesets.length,
    outcomesShown: batch.idsAgree,
    ids: { boundary: readBoundary(request.contentType), envelope: [batch.boundary, ...batch.changesets] },
  }
}

/** The plan with another time of receipt; a time that a client gave a record itself stays. */
export function redate(plan: Plan, markedMs: number): Plan {
  if (markedMs === plan.markedMs) return plan
  const [before, RecordedOn] = [new Date(plan.markedMs).toISOString(), new Date(markedMs).toISOString()]
  const records = plan.records.map((planned) =>
    planned.record?.RecordedOn === before
      ? { ...planned, record: { ...planned.record, RecordedOn } }
      : planned,
  )
  return { ...plan, records, markedMs }
}

/**
 * Plans a journaled request again. Its records were accepted when it came: lower limits or another rule for unmapped fields must
 * not refuse one now that may have been sent.
 */
export function planStored(
  { request, body, markedAtMs }: StoredRequest,
  partner: Partner,
  receivedMs: number,
  slices: Slices,
): Promise<Plan> {
  const { mapping } = partner
  const markedMs = markedAtMs ?? receivedMs
  const unmappedFields = mapping.unmappedFields === 'strict' ? 'report' : mapping.unmappedFields
  return planWrites(
    request,
    body,
    { ...partner, mapping: { ...mapping, unmappedFields } },
    markedMs,
    noBatchLimits,
    slices,
  )
}

/** Plans a batch of the journal again; undefined for one that this version cannot read. */
export async function planAgain(
  { payload, receivedMs }: Pick<StoredBatch, 'payload' | 'receivedMs'>,
  partner: Partner,
  slices: Slices,
): Promise<{ readonly request: StoredRequest; readonly plan: Plan } | undefined> {
  if (payload === undefined) return undefined
  try {
    const request = decodeStoredRequest(payload)
    return { request, plan: await planStored(request, partner, receivedMs, slices) }
  } catch (cause) {
    if (cause instanceof AdapterError) return undefined
    throw cause
  }
}

function planSingle(
  request: WriteRequest,
  body: Buffer,
  partner: Partner,
  receivedMs: number,
  limits: BatchLimits,
): Plan {
  const { record: flat, faults } = decodeRecordBytes(body, request.contentType, limits)
  const answering = {
    contentId: undefined,
    contentIdInHttp: false,
    changeset: undefined,
    ...readPreferences(request.prefer, request.accept),
  }
  const { record, unmapped } = planRecord(
    answering,
    flat,
    faults,
    partner,
    new Date(receivedMs).toISOString(),
  )
  return {
    records: [record],
    markedMs: receivedMs,
    unmappedFields: unmapped,
    convertedFields: flat?.converted ?? 0,
    changesets: 0,
    outcomesShown: true,
    ids: undefined,
  }
}

/** Plans one record; exactly one of `flat` and `faults` is defined. */
function planRecord(
  answering: PartPreferences,
  flat: FlatRecord | undefined,
  faults: readonly RecordFault[] | undefined,
  partner: Partner,
  recordedOn: string,
): { record: PlannedRecord; unmapped: number } {
  if (flat === undefined)
    return { record: { answering, record: undefined, faults: faults ?? [], key: '' }, unmapped: 0 }
  const key = `${flat.Learner} ${flat.AttendableEvent}`.toLowerCase()
  const { record, faults: own, unmapped } = toV3Record(flat, partner.mapping, recordedOn)
  return { record: { answering, record, faults: own, key }, unmapped: unmapped.length }
}

/** The digests that the journal knows a request by. `upstream` is the base address of V3. */
export async function identityOf(
  owner: string,
  upstream: string,
  { body, plan: { ids }, receivedMs, slices }: PlannedRequest,
): Promise<Pick<NewBatch, 'owner' | 'ids' | 'content' | 'receivedMs'>> {
  const content = await digestRequest(owner, upstream, ids?.boundary, body, slices)
  return { owner, ids: ids === undefined ? undefined : digestIds(owner, ids), content, receivedMs }
}
