import fc from 'fast-check'
import { expect } from 'vitest'

import type { Balance, Journal, RecordRef, RecordState, Settled } from '../../src/journal/index.ts'
import {
  type LifecycleEvent,
  ofEachState,
  standingStates,
  type Transition,
  transitions,
} from '../../src/journal/lifecycle.ts'
import { afterOf, batchOf } from './batches.ts'

/** One action of a caller. `batch` is taken modulo the number of batches. */
type Act =
  | {
      readonly kind: 'begin'
      readonly keys: readonly string[]
      readonly name: string
      readonly partner: string
      readonly owner: string
      readonly side: 'v2' | undefined
      readonly resendOf: 0 | undefined
    }
  | { readonly kind: 'answered'; readonly batch: number }
  | { readonly kind: 'settle'; readonly batch: number; readonly outcomes: readonly Outcome[] }
  | { readonly kind: 'reopen'; readonly batch: number }

type Outcome = Pick<Settled, 'state' | 'retry' | 'superseded'>

interface ModelRecord extends RecordRef {
  readonly partner: string
  readonly key: string
  state: RecordState
  retry: 'resend' | number | undefined
  superseded: boolean
}

interface ModelBatch {
  readonly number: number
  readonly name: string
  readonly content: string
  readonly owner: string
  readonly side: 'v2' | undefined
  answered: boolean
  retired: boolean
  readonly records: readonly ModelRecord[]
}

const outcome: fc.Arbitrary<Outcome> = fc.oneof(
  fc.constant({ state: 'confirmed' as const, retry: undefined }),
  fc.constant({ state: 'unknown' as const, retry: undefined, superseded: true }),
  fc.record({
    state: fc.constantFrom('notApplied' as const, 'unknown' as const, 'parked' as const),
    retry: fc.constantFrom(undefined, 'resend' as const, 5),
  }),
  fc.constant({ state: 'refused' as const, retry: undefined }),
)
const act: fc.Arbitrary<Act> = fc.oneof(
  fc.record({
    kind: fc.constant('begin' as const),
    keys: fc.array(fc.constantFrom('a', 'b', 'c', 'd'), { minLength: 1, maxLength: 4 }),
    name: fc.constantFrom('one', 'two', 'three'),
    partner: fc.constantFrom('acme', 'other'),
    owner: fc.constantFrom('one client', 'another client'),
    side: fc.constantFrom(undefined, undefined, 'v2' as const),
    resendOf: fc.constantFrom(undefined, 0 as const),
  }),
  fc.record({ kind: fc.constant('answered' as const), batch: fc.nat(20) }),
  fc.record({
    kind: fc.constant('settle' as const),
    batch: fc.nat(20),
    outcomes: fc.array(outcome, { minLength: 1, maxLength: 4 }),
  }),
  fc.record({ kind: fc.constant('reopen' as const), batch: fc.nat(20) }),
)

export const scripts = fc.array(act, { minLength: 1, maxLength: 25 })

/** Runs a script and compares every result of the journal with a model that has no tables. */
export async function followScript(journal: Journal, script: readonly Act[]): Promise<void> {
  const batches: ModelBatch[] = []
  for (const one of script) {
    if (one.kind === 'begin') await begin(journal, batches, one)
    else {
      const batch = batches[one.batch % Math.max(1, batches.length)]
      if (batch === undefined) continue
      if (one.kind === 'answered') {
        journal.answered(batch.number)
        batch.answered = true
      } else if (one.kind === 'settle') await settle(journal, batches, batch, one.outcomes)
      else await reopen(journal, batches, batch)
    }
  }
  const records = batches.flatMap((batch) => batch.records)
  expect(await journal.balances()).toEqual(balancesOf(records))
  for (const { number, records: own } of batches) {
    const stored = await journal.load(number)
    expect(stored?.records.map(({ state, superseded }) => [state, superseded])).toEqual(
      own.map(({ state, superseded }) => [state, superseded]),
    )
  }
  const older = records.map((own) =>
    records.findLast((one) => one.key === own.key && isOpen(one) && isOlder(one, own)),
  )
  expect(await journal.olderOpen(records.map(toRef))).toEqual(older.map((one) => one && toRef(one)))
  expect(await journal.stillOpen(records.map(toRef))).toEqual(records.filter(isOpen).map(toRef))
}

const toRef = ({ batch, position }: RecordRef): RecordRef => ({ batch, position })
const isOpen = ({ state }: ModelRecord): boolean => state === 'open'
/** Returns true if the record may have been applied or is being sent. */
const mayStand = (record: ModelRecord): boolean =>
  isOpen(record) ||
  (record.retry !== undefined && standingStates.some((standing) => standing === record.state))

/** Moves a record to the state that the lifecycle table prescribes. */
function move(record: ModelRecord, on: LifecycleEvent, to?: RecordState): void {
  const from: RecordState = record.state
  const rows: readonly Transition[] = transitions
  const ways = rows.filter((one) => one.on === on && one.from === from && (to === undefined || one.to === to))
  expect(ways, `${on} of ${from}`).toHaveLength(1)
  record.state = ways[0]?.to ?? from
}
const isOlder = (one: RecordRef, other: RecordRef): boolean =>
  one.batch < other.batch || (one.batch === other.batch && one.position < other.position)

async function begin(
  journal: Journal,
  batches: ModelBatch[],
  { keys, name: given, partner, owner, side, resendOf }: Extract<Act, { kind: 'begin' }>,
): Promise<void> {
  const name = `${partner} ${given}`
  const content = keys.join()
  const earlier = batches.filter((one) => one.name === name && one.owner === owner && !one.retired)
  const before = earlier.findLast(
    (one) =>
      one.content === content && (side === undefined || one.side === undefined || resendOf !== undefined),
  )
  const others = earlier.filter((one) => one.content !== content)
  const begun = await journal.begin(batchOf(keys, { name, partner, owner, side, resendOf }))
  for (const one of others)
    one.retired = others.some(
      ({ answered, content: same, number }) => answered && same === one.content && number >= one.number,
    )
  if (before !== undefined) {
    const running = before.records.some(isOpen)
    const sent = earlier
      .filter((one) => one.content === content && one !== before)
      .map(({ number }) => number)
    const known = { kind: 'known', batch: before.number, running, side: before.side }
    expect(begun).toEqual(sent.length === 0 ? known : { ...known, earlier: sent.reverse() })
    return
  }
  const open = batches.flatMap((one) => one.records).filter(isOpen)
  const after = keys.flatMap((key, position) => {
    const older = open
      .filter((one) => one.key === key)
      .slice(-1)
      .map(toRef)
    return older.length === 0 ? [] : [[position, older]]
  })
  expect(begun).toMatchObject({ kind: 'new', idsReused: others.length > 0 })
  expect(afterOf(begun)).toEqual(Object.fromEntries(after))
  const number = begun.batch
  const records = keys.map((key, position): ModelRecord => {
    return { batch: number, position, partner, key, state: 'open', retry: undefined, superseded: false }
  })
  batches.push({ number, name, content, owner, side, answered: false, retired: false, records })
}

async function settle(
  journal: Journal,
  batches: readonly ModelBatch[],
  batch: ModelBatch,
  outcomes: readonly Outcome[],
): Promise<void> {
  const settled = batch.records.filter(isOpen).flatMap((record, index): [ModelRecord, Settled][] => {
    const given = outcomes[index]
    if (given === undefined) return []
    // A record of a batch for V2 is never due.
    const { state, superseded, retry } = given
    const isDue = typeof retry === 'number'
    const final = batch.side === 'v2' && isDue ? { state, superseded } : { state, superseded, retry }
    return [[record, { ...final, position: record.position, answer: 'answer' }]]
  })
  if (settled.length === 0) return
  const told = settled.map(([, one]) => one)
  // Calls `settle` twice, like a caller that did not get the result of the first call.
  await Promise.all([journal.settle(batch.number, told), journal.settle(batch.number, told)])
  for (const [record, { state, retry, superseded = false }] of settled) {
    move(record, 'settle', state)
    Object.assign(record, { retry, superseded: superseded || record.superseded })
  }
  for (const [record, { state, retry }] of settled) {
    const isLeft = state === 'unknown' && (retry === undefined || batch.side === 'v2')
    if (state !== 'confirmed' && !isLeft) continue
    for (const older of batches.flatMap((one) => one.records)) {
      if (older.key !== record.key || isOpen(older) || older.retry === undefined || !isOlder(older, record))
        continue
      end(older)
    }
  }
  for (const [record] of settled)
    if (record.retry !== undefined && batches.some((one) => one.side === 'v2' && isLeftAfter(one, record)))
      end(record)
}

/** Returns true if the batch has a newer record of the key that V2 may have applied and that will not be read back. */
const isLeftAfter = ({ records }: ModelBatch, record: ModelRecord): boolean =>
  records.some(
    (one) =>
      one.key === record.key && one.state === 'unknown' && one.retry !== undefined && isOlder(record, one),
  )

function end(record: ModelRecord): void {
  record.superseded = true
  record.retry = undefined
  move(record, 'supersede')
}

async function reopen(journal: Journal, batches: readonly ModelBatch[], batch: ModelBatch): Promise<void> {
  const all = batches.flatMap((one) => one.records)
  const reopened = batch.records.filter(
    (record) =>
      !isOpen(record) &&
      record.retry !== undefined &&
      !all.some((other) => other.key === record.key && mayStand(other) && isOlder(record, other)),
  )
  for (const record of reopened) move(record, 'reopen')
  const expected = reopened.map(({ position, key }) => {
    const own = { batch: batch.number, position }
    const older = all.filter((one) => one.key === key && isOpen(one) && isOlder(one, own))
    const others = older.filter((one) => !reopened.includes(one))
    return [position, others.slice(-1).map(toRef)] as const
  })
  const positions = batch.records.map(({ position }) => position)
  expect((await journal.reopen(batch.number, positions.reverse(), undefined)).after).toEqual(
    new Map(expected),
  )
}

function balancesOf(records: readonly ModelRecord[]): Balance[] {
  const partners = [...new Set(records.map(({ partner }) => partner))].sort()
  return partners.map((partner) => {
    const own = records.filter((record) => record.partner === partner)
    const count = (state: RecordState): number => own.filter((record) => record.state === state).length
    return { partner, received: own.length, ...ofEachState(count) }
  })
}
