import type { OperationOf } from '../group-commit.ts'
import type { RecordRef, ReopenResult } from '../journal.ts'
import { stateCodes, supersededCodes, toRetryCode } from '../lifecycle.ts'
import { encodeMark, type HashKeys, packAnswers } from '../seal.ts'
import {
  type BatchRow,
  type BatchRows,
  type ByKey,
  type ChangeContext,
  count,
  isNewer,
  move,
  type OutcomeRow,
  type RecordRow,
  toReason,
} from './rows.ts'

/** A record that is to be settled, as it is. */
export interface SettledRecord extends RecordRef {
  readonly state: number
  readonly reason: string | null
  readonly key: string
  /** Whether an older record of its key can be superseded. */
  readonly hasOlder: number | boolean
  /** Whether V2 may have got a newer record of its key, which is not read back again. */
  readonly isSuperseded: number | boolean
}

/** A record that supersedes all older ones of its key. */
export interface Superseding extends RecordRef {
  readonly key: string
}

/** The rows that settles read before they change anything. */
export interface SettleRows {
  readonly batches: ReadonlyMap<number, BatchRow>
  /** By batch and position. */
  readonly records: ReadonlyMap<number, ReadonlyMap<number, SettledRecord>>
}

type Settle = OperationOf<'settle'>

/**
 * Settles records, each operation as a whole or not at all, and returns those that supersede older ones of their keys. What may have been
 * applied and is never read back again (all that V2 was sent) supersedes as well: nothing else would keep an older one from being posted over it.
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
 * Adds the outcomes of an operation that are new. The same one once more, after an answer that got lost, is not an error; another one is, and
 * one of an instance that has the batch no longer: what the other one has settled alike may be answered in other words.
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
    const kept = own.get(outcome.position) ?? records.get(batch)?.get(outcome.position)
    if (!isOwn) return 'lost'
    if (kept?.state === stateCodes.open) fresh.push(outcome)
    else if (kept?.state !== stateCodes[outcome.state] || kept.reason !== toReason(outcome.reason))
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
    move(changes, row.partner, stateCodes.open, code)
    count(changes, batch, -1, retry === undefined ? -1 : 0)
  }
  settled.set(batch, own)
  const pack = packAnswers(fresh)
  if (pack !== undefined) changes.blobs.push({ kind: 'answers', batch, owner: row.owner, plain: pack })
  return 'done'
}

/**
 * Ends the active ones of these records that are older than one of their key that supersedes them, and was settled with them or, where V2
 * may have got it, before; each once. Returns of each key the newest one that supersedes, where others are older.
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
    move(changes, batches.get(batch)?.partner ?? '', state, next)
    count(changes, batch, 0, -1)
  }
  return [...newest].flatMap(([key, ref]) =>
    Boolean(recordOf(ref)?.hasOlder) ? [{ key, batch: ref.batch, position: ref.position }] : [],
  )
}

/** The reason that a superseded record gets; null: it keeps its own. */
export const reasonOfSuperseded = (state: number, next: number): string | null =>
  next === state ? null : 'superseded'

function toNumbers(list: string): readonly number[] {
  const parsed: unknown = JSON.parse(list)
  return Array.isArray(parsed) ? parsed.map(Number) : []
}

const NONE: readonly RecordRef[] = []

/** The records of a batch that are opened again: active ones that no newer one of their key forbids. */
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

/** The first of these records for each key. */
export function firstOfKeys(records: readonly RecordRow[]): readonly RecordRow[] {
  return [...new Map(records.toReversed().map((one) => [one.key, one])).values()]
}

/**
 * Opens these records again and gives their batch to this instance. `older`: the nearest older open record of each key. Those that are
 * opened together wait for none of each other: the first of a key waits for all.
 */
export function reopen(
  { instance, hasKey, changes }: ChangeContext,
  { batch, credentials }: OperationOf<'reopen'>,
  { batch: row }: BatchRows,
  opened: readonly RecordRow[],
  older: ByKey,
): ReopenResult {
  for (const { state } of opened) move(changes, row.partner, state, stateCodes.open)
  if (opened.length > 0) {
    changes.reopened.set(
      batch,
      opened.map(({ position }) => position),
    )
    count(changes, batch, opened.length, 0)
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

/** Counts the open records of a batch as refused and deletes it. Nothing of it may have been applied, or be under way in another run. */
export function forget(
  { instance, changes }: ChangeContext,
  { batch, open, lease }: OperationOf<'forget'>,
  rows: BatchRows | undefined,
): 'done' | 'lost' {
  // It is gone already: the answer to an earlier attempt was lost.
  if (rows === undefined) return 'done'
  const isOwn = rows.batch.instance === instance && lease === instance
  const isWithoutOutcome = rows.records.every(
    ({ state }) => state === stateCodes.open || state === stateCodes.refused,
  )
  if (!isOwn || rows.batch.open !== open || !isWithoutOutcome) return 'lost'
  move(changes, rows.batch.partner, stateCodes.open, stateCodes.refused, open)
  changes.forgotten.push(batch)
  return 'done'
}
