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

const PLAN_WORK = 512

export type PartPreferences = Pick<
  BatchPart,
  'contentId' | 'contentIdInHttp' | 'changeset' | 'prefersMinimal' | 'metadata'
>

/** A record that will be posted, or the faults for which it is refused. */
export interface PlannedRecord {
  readonly answering: PartPreferences
  /** The V3 record, or `undefined` if and only if `faults` is defined. To save memory, it is encoded as JSON only when it is posted. */
  readonly record: V3Record | undefined
  readonly faults: readonly RecordFault[] | undefined
  /** Identifies the learner and the event. Records with the same key are sent one after another. Empty for a record that cannot be read. */
  readonly key: string
}

export interface PlannedRequest {
  readonly request: WriteRequest
  readonly body: Buffer
  /** Time of receipt in milliseconds since the epoch. */
  readonly receivedMs: number
  readonly plan: Plan
  readonly slices: Slices
}

export interface Plan {
  readonly records: readonly PlannedRecord[]
  /** Time of receipt in milliseconds since the epoch. A record that has no time of its own gets this time as `RecordedOn`. */
  readonly markedMs: number
  readonly unmappedFields: number
  /** Number of values in a form that only V2's parser reads, such as `"True"` for a boolean. The plan contains the converted values. */
  readonly convertedFields: number
  readonly changesets: number
  /**
   * False if the ids in the header and the body differ. The client then gets a single 200, whatever the outcomes of the records are
   * (batch-wire 3).
   */
  readonly outcomesShown: boolean
  /** The ids that the client gave its batch, or `undefined` for a single record. */
  readonly ids: BatchIds | undefined
}

/** Decodes a write request and plans each post. A mark without its own time gets `receivedMs`. Throws the errors of the decoders of V2. */
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

/** Replaces the time of receipt in a plan. A record whose client gave a time of its own keeps that time. */
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

/** Plans a stored request again. Limits and strict rules do not apply, because they must not refuse a record that may have been sent. */
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

/** Plans the stored request of a batch again. Returns `undefined` if this version cannot read the request. */
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

/** Plans one record from its decoded form or its faults. Exactly one of `flat` and `faults` is defined. */
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

/** Returns the digests by which the journal recognises a batch. `upstream` is the base address of V3. */
export async function identityOf(
  owner: string,
  upstream: string,
  { body, plan: { ids }, receivedMs, slices }: PlannedRequest,
): Promise<Pick<NewBatch, 'owner' | 'ids' | 'content' | 'receivedMs'>> {
  const content = await digestRequest(owner, upstream, ids?.boundary, body, slices)
  return { owner, ids: ids === undefined ? undefined : digestIds(owner, ids), content, receivedMs }
}
