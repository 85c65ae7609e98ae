import type { Batch, BatchPart, FlatRecord, RecordFault } from '../v2/index.ts'
import type { V3Record } from '../v3/index.ts'
import { toV3Record } from '../translate/index.ts'
import type { Partner } from './partner.ts'

/** What one record says about how it wants to be answered. */
export type Answering = Pick<
  BatchPart,
  'contentId' | 'contentIdInHttp' | 'changeset' | 'prefersMinimal' | 'metadata'
>

/** A record that will be posted, or why it is refused without being posted. */
export interface PlannedRecord {
  readonly answering: Answering
  /** What is posted; undefined exactly when `faults` is defined. Its JSON is written when it leaves, not held for all. */
  readonly record: V3Record | undefined
  readonly faults: readonly RecordFault[] | undefined
  /** Records with the same key are sent one after another. */
  readonly key: string
}

export interface Plan {
  readonly records: readonly PlannedRecord[]
  /** Members of records that were left out. */
  readonly unmappedFields: number
}

/** Decides what is posted for each part of a batch, without doing it. `recordedOn` is the time of receipt. */
export function planBatch(batch: Batch, partner: Partner, recordedOn: string): Plan {
  let unmappedFields = 0
  const records = batch.parts.map((part) => {
    const planned = planRecord(part, part.record, part.faults, partner, recordedOn)
    unmappedFields += planned.unmapped
    return planned.record
  })
  return { records, unmappedFields }
}

/** Decides what is posted for one record; exactly one of `flat` and `faults` is defined. */
export function planRecord(
  answering: Answering,
  flat: FlatRecord | undefined,
  faults: readonly RecordFault[] | undefined,
  partner: Partner,
  recordedOn: string,
): { record: PlannedRecord; unmapped: number } {
  if (flat === undefined) return { record: refused(answering, faults ?? []), unmapped: 0 }
  const translation = toV3Record(flat, partner.mapping, recordedOn)
  const unmapped = translation.unmapped.length
  if (translation.record === undefined) return { record: refused(answering, translation.faults), unmapped }
  const { record } = translation
  const key = `${flat.Learner} ${flat.AttendableEvent}`.toLowerCase()
  return { record: { answering, record, faults: undefined, key }, unmapped }
}

function refused(answering: Answering, faults: readonly RecordFault[]): PlannedRecord {
  return { answering, record: undefined, faults, key: '' }
}
