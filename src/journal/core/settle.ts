import type { OperationOf } from '../group-commit.ts'
import type { RecordRef, ReopenResult } from '../journal.ts'
import { stateCodes, supersededCodes, toRetryCode } from '../lifecycle.ts'
import { encodeMark, type HashKeys, packAnswers } from '../seal.ts'
import {
  addToTotal,
  type BatchRow,
  type BatchRows,
  type ByKey,
  type ChangeContext,
  isNewer,
  move,
  type OutcomeRow,
  type RecordRow,
  toReason,
} from './rows.ts'

export interface SettledRecord extends RecordRef {
  readonly state: number
  readonly reason: string | null
  readonly key: string
  readonly hasOlder: number | boolean
  /** True if a newer record of the same key was sent to V2 and has an unknown outcome. The adapter never reads that newer record back. */
  readonly isSuperseded: number | boolean
}

export interface Superseding extends RecordRef {
  readonly key: string
}

export interface SettleRows {
  readonly batches: ReadonlyMap<number, BatchRow>
  readonly records: ReadonlyMap<number, ReadonlyMap<number, SettledRecord>>
}

type Settle = OperationOf<'settle'>

/**
 * Settles records. Each operation takes effect completely or not at all. Returns the records that supersede older records of the same keys.
 * A record with an unknown outcome that is never read back, such as a record that was sent to V2, also supersedes older records. Otherwise
 * an older record could be posted over the mark of the newer record.
 */
export function settle(
  context: ChangeContext,
  operations: readonly Settle[],
  rows: SettleRows,
  hashKeys: HashKeys,
): { readonly results: readonly ('done' | 'lost')[]; readonly superseding: readonly Superseding[] } {
  const settled = new Map<number, Map<number, OutcomeRow>>()
  const results = operations.map((operation) => settleOne(context, operation, rows, settled, hashKeys))
  const superseding = supersede(context, rows, settled)
  const { changes } = context
  for (const [batch, outcomes] of settled) {
    changes.outcomes.push(...outcomes.values())
    const { newcomer = 0, retires = '[]' } = rows.batches.get(batch) ?? {}
    if (newcomer === 0 || ![...outcomes.values()].some(({ state }) => state === stateCodes.confirmed))
      continue
    changes.accepted.push(batch)
    changes.retired.push(...toNumbers(retires))
  }
  return { results, superseding }
}

/**
 * Settles the records of one operation. A repeated outcome is not an error, because the result of the first attempt may have been lost.
 * Returns `lost` for a different outcome. Also returns `lost` if this instance no longer owns the batch, because the new owner may have
 * stored another reason for the same outcome.
 */
function settleOne(
  { instance, nowMs, changes }: ChangeContext,
  { batch, outcomes, lease }: Settle,
  { batches, records }: SettleRows,
  settled: Map<number, Map<number, OutcomeRow>>,
  hashKeys: HashKeys,
): 'done' | 'lost' {
  const row = batches.get(batch)
  if (row === undefined) return 'lost'
  const isOwn = row.instance === instance && (lease === undefined || lease === instance)
  const own = settled.get(batch) ?? new Map<number, OutcomeRow>()
  const fresh: Settle['outcomes'][number][] = []
  for (const outcome of outcomes) {
    const current = own.get(outcome.position) ?? records.get(batch)?.get(outcome.position)
    if (!isOwn) return 'lost'
    if (current?.state === stateCodes.open) fresh.push(outcome)
    else if (current?.state !== stateCodes[outcome.state] || current.reason !== toReason(outcome.reason))
      return 'lost'
  }
  for (const { position, state, retry, reason, deadLetter, superseded: isEnded, mark } of fresh) {
    const code = stateCodes[state]
    own.set(position, {
      batch,
      position,
      state: code,
      active: retry === undefined ? 0 : 1,
      retry: toRetryCode(retry),
      reason: toReason(reason),
      dead_letter: deadLetter === true ? 1 : 0,
      superseded: isEnded === true ? 1 : 0,
      mark: mark === undefined ? null : encodeMark(hashKeys, mark),
      settled_ms: nowMs,
    })
    move(changes, row, stateCodes.open, code, retry === undefined ? -1 : 0)
  }
  settled.set(batch, own)
  const pack = packAnswers(fresh)
  if (pack !== undefined) changes.blobs.push({ kind: 'answers', batch, owner: row.owner, plain: pack })
  return 'done'
}

/**
 * Ends the settled records that are active and superseded by a newer record of the same key. Either the newer record was settled in the
 * same commit, or V2 may have received the newer record earlier. Returns the newest superseding record of each key that has older records.
 */
function supersede(
  { changes }: ChangeContext,
  { batches, records }: SettleRows,
  settled: ReadonlyMap<number, Map<number, OutcomeRow>>,
): readonly Superseding[] {
  const recordOf = ({ batch, position }: RecordRef): SettledRecord | undefined =>
    records.get(batch)?.get(position)
  const all = [...settled.values()].flatMap((outcomes) => [...outcomes.values()])
  const newest = new Map<string, RecordRef>()
  for (const outcome of all) {
    const isFinal = outcome.active === 0 || batches.get(outcome.batch)?.onV2 === 1
    if (outcome.state !== stateCodes.confirmed && !(isFinal && outcome.state === stateCodes.unknown)) continue
    const key = recordOf(outcome)?.key ?? ''
    const before = newest.get(key)
    if (before === undefined || isNewer(outcome, before)) newest.set(key, outcome)
  }
  for (const outcome of all) {
    const { batch, position, state, active, reason } = outcome
    const next = supersededCodes.get(state)
    const record = recordOf(outcome)
    const newer = newest.get(record?.key ?? '')
    const isEnded = Boolean(record?.isSuperseded) || (newer !== undefined && isNewer(newer, outcome))
    if (active === 0 || next === undefined || !isEnded) continue
    const why = reasonOfSuperseded(state, next) ?? reason
    const ended = { state: next, active: 0, retry: null, reason: why, superseded: 1, mark: null }
    settled.get(batch)?.set(position, { ...outcome, ...ended })
    move(changes, { batch, partner: batches.get(batch)?.partner ?? '' }, state, next, -1)
  }
  return [...newest].flatMap(([key, ref]) =>
    Boolean(recordOf(ref)?.hasOlder) ? [{ key, batch: ref.batch, position: ref.position }] : [],
  )
}

/** Returns the new reason of a superseded record, or null if the record keeps its reason. */
export const reasonOfSuperseded = (state: number, next: number): string | null =>
  next === state ? null : 'superseded'

function toNumbers(list: string): readonly number[] {
  const parsed: unknown = JSON.parse(list)
  return Array.isArray(parsed) ? parsed.map(Number) : []
}

const NONE: readonly RecordRef[] = []

/** Returns the active records of a batch that may be reopened, because no newer record of the same key prevents reopening. */
export function chooseReopened(
  { instance }: ChangeContext,
  { batch, positions }: OperationOf<'reopen'>,
  { batch: row, records }: BatchRows,
  standing: ByKey,
): readonly RecordRow[] {
  if (row.open > 0 && row.instance !== instance) return []
  const wanted = new Set(positions)
  return records.filter(({ position, state, active, key }) => {
    if (active === 0 || state === stateCodes.open || !wanted.has(position)) return false
    const newest = standing.get(key)
    return newest === undefined || !isNewer(newest, { batch, position })
  })
}

export function firstOfKeys(records: readonly RecordRow[]): readonly RecordRow[] {
  return [...new Map(records.toReversed().map((one) => [one.key, one])).values()]
}

/**
 * Reopens the `opened` records and assigns their batch to this instance. `older` has the nearest older open record of each key. All
 * reopened records of one key wait for that older record, and not for each other.
 */
export function reopen(
  { instance, hasKey, changes }: ChangeContext,
  { batch, credentials }: OperationOf<'reopen'>,
  { batch: row }: BatchRows,
  opened: readonly RecordRow[],
  older: ByKey,
): ReopenResult {
  for (const { state } of opened) move(changes, row, state, stateCodes.open, 0)
  if (opened.length > 0) {
    changes.reopened.set(
      batch,
      opened.map(({ position }) => position),
    )
    if (hasKey && credentials !== undefined)
      changes.blobs.push({ kind: 'credentials', batch, owner: row.owner, plain: Buffer.from(credentials) })
  }
  const lists = new Map([...older].map(([key, ref]) => [key, [ref]]))
  return {
    lease: instance,
    after: new Map(opened.map(({ position, key }) => [position, lists.get(key) ?? NONE])),
    unknown: new Map(
      opened.flatMap(({ position, state, reason }) =>
        state === stateCodes.unknown && reason !== null ? [[position, reason]] : [],
      ),
    ),
  }
}

/**
 * Counts the open records of a batch as refused and deletes the batch. Returns `lost` if a record may be applied or another lease covers
 * the batch.
 */
export function forget(
  { instance, changes }: ChangeContext,
  { batch, open, lease }: OperationOf<'forget'>,
  rows: BatchRows | undefined,
): 'done' | 'lost' {
  // The batch is already deleted: an earlier attempt succeeded, but its response was lost.
  if (rows === undefined) return 'done'
  const isOwn = rows.batch.instance === instance && lease === instance
  const isWithoutOutcome = rows.records.every(
    ({ state }) => state === stateCodes.open || state === stateCodes.refused,
  )
  if (!isOwn || rows.batch.open !== open || !isWithoutOutcome) return 'lost'
  addToTotal(changes, rows.batch.partner, stateCodes.open, -open)
  addToTotal(changes, rows.batch.partner, stateCodes.refused, open)
  changes.forgotten.push(batch)
  return 'done'
}
