import { describe, expect, it, onTestFinished } from 'vitest'

import { AdapterError } from '../../src/errors.ts'
import { createNoJournal, type Journal, type Settled, type StoredBatch } from '../../src/journal/index.ts' // prettier-ignore
import { createEvents } from '../../src/observability/events.ts'
import { createLogger } from '../../src/observability/logger.ts'
import { createAcceptedCredentials } from '../../src/partners/credentials.ts'
import type { Authorisation } from '../../src/partners/partner.ts'
import { createRecovery } from '../../src/writes/recovery.ts'
import { createManualClock } from '../support/manual-clock.ts'
import { authorisation } from './start-run.ts'
import { createWriteContext } from './write-context.ts'

const client = { authorization: 'bearer a', subscriptionKey: 'k' }
/** Batches from 1000 on belong to the partner `here`, whose client has sent credentials. All other batches belong to the partner `gone`. */
const partnerOf = (batch: number): string => (batch < 1_000 ? 'gone' : 'here')
const storedOf = (batch: number): StoredBatch => ({
  batch,
  partner: partnerOf(batch),
  owner: partnerOf(batch),
  receivedMs: 0,
  // The batch has no request and no records, because these tests examine only the order of the batches.
  payload: undefined,
  credentials: undefined,
  records: [],
})

const here: Authorisation = { ...authorisation(), client, credentials: client, owner: 'here' }

function startRecovery(own: Partial<Journal>, authorise?: (partner: string) => Promise<Authorisation>) {
  const clock = createManualClock()
  const log: string[] = []
  const loaded: number[] = []
  const journal: Journal = {
    ...createNoJournal(),
    load: (batch) => {
      loaded.push(batch)
      return Promise.resolve(storedOf(batch))
    },
    ...own,
  }
  const accepted = createAcceptedCredentials()
  accepted.accept(here)
  const context = createWriteContext({
    journal,
    clock,
    accepted,
    events: createEvents(createLogger('info', { write: (line) => log.push(line) })),
  })
  const recovery = createRecovery(
    context,
    (partner, shown) => authorise?.(partner) ?? (shown === undefined ? 'credentials' : Promise.resolve(here)),
    () => 3_000,
  )
  recovery.start()
  onTestFinished(() => recovery.stop())
  return { clock, context, loaded, log }
}

const numbers = (count: number): number[] => Array.from({ length: count }, (_, index) => index + 1)

describe('recovery', () => {
  it('finishes a batch that has credentials even if many earlier batches wait for credentials', async () => {
    let taken = [...numbers(40), 1_000].map((batch) => ({ batch, lease: 1, after: new Map([[0, []]]) }))
    const { clock, context, loaded } = startRecovery({
      takeOver: () => Promise.resolve(taken.splice(0)),
    })
    await clock.pass(5_000)
    expect([...context.orphans.keys()]).toEqual(numbers(40))
    // Recovery loaded each batch once, so it does not load a waiting batch repeatedly.
    expect(loaded.length).toBe(41)
    taken = []
  })

  it('begins a waiting batch as soon as another batch ends', async () => {
    const { clock, context } = startRecovery({})
    for (const batch of numbers(64))
      context.orphans.set(1_000 + batch, { lease: 1, after: new Map(), sinceMs: 0 })
    await clock.pass(1_001)
    expect([...context.orphans.keys()]).toEqual([])
  })

  it('finds a due record even if one search returns only earlier records without credentials', async () => {
    const due = [...numbers(600), 1_000]
    const reopened: number[] = []
    const { clock } = startRecovery({
      due: (_nowMs, limit) =>
        Promise.resolve(due.slice(0, limit).map((batch) => ({ batch, positions: [0] }))),
      reopen: (batch) => {
        reopened.push(batch)
        due.splice(due.indexOf(batch), 1)
        return Promise.resolve({ lease: 1, after: new Map() })
      },
    })
    await clock.pass(60_000)
    expect(reopened).toEqual([1_000])
  })

  it('searches the journal less often while most due records wait for credentials', async () => {
    let reads = 0
    const due = [...numbers(600), 1_000]
    const reopened: number[] = []
    const { clock } = startRecovery({
      due: async (_nowMs, limit) => {
        reads += 1
        await new Promise<void>((resolve) => void clock.after(100, resolve))
        return due.slice(0, limit).map((batch) => ({ batch, positions: [0] }))
      },
      reopen: (batch) => {
        reopened.push(batch)
        due.splice(due.indexOf(batch), 1)
        return Promise.resolve({ lease: 1, after: new Map() })
      },
    })
    await clock.pass(63_000)
    expect({ reads, reopened }).toEqual({ reads: 15, reopened: [1_000] })
  })

  it('finishes due records of one partner while the token endpoint of another partner does not respond', async () => {
    const due = [...numbers(600), 1_000]
    let isSilent = true
    const reopened: number[] = []
    const { clock } = startRecovery(
      {
        due: (_nowMs, limit) =>
          Promise.resolve(due.slice(0, limit).map((batch) => ({ batch, positions: [0] }))),
        reopen: (batch) => {
          reopened.push(batch)
          due.splice(due.indexOf(batch), 1)
          return Promise.resolve({ lease: 1, after: new Map() })
        },
      },
      async (partner) => {
        if (partner === 'here' || !isSilent) return here
        await new Promise<void>((resolve) => void clock.after(10_000, resolve))
        throw new AdapterError('ADP_UPSTREAM_UNAVAILABLE', 'No token.')
      },
    )
    await clock.pass(30_000)
    expect(reopened).toEqual([1_000])
    isSilent = false
    await clock.pass(60_000)
    expect(reopened.length).toBe(601)
  })

  it('retries a batch every 5 s while no token is available', async () => {
    const failing = () => Promise.reject(new AdapterError('ADP_UPSTREAM_UNAVAILABLE', 'No token.'))
    const { clock, context, log } = startRecovery({}, failing)
    context.orphans.set(1_000, { lease: 1, after: new Map([[0, []]]), sinceMs: 0 })
    await clock.pass(11_500)
    expect(log.length).toBe(3)
    expect([...context.orphans.keys()]).toEqual([1_000])
  })

  it('doubles the pause after each failed run of a batch, up to 40 s', async () => {
    let loads = 0
    const load = (): never => {
      loads += 1
      throw new RangeError('an odd reply')
    }
    const { clock, context } = startRecovery({ load }, () => Promise.resolve(here))
    context.orphans.set(1_000, { lease: 1, after: new Map([[0, []]]), sinceMs: 0 })
    const counts: number[] = []
    for (const ms of [4_500, 6_000, 11_000, 21_000, 41_000, 41_000, 41_000]) {
      await clock.pass(ms)
      counts.push(loads)
    }
    expect(counts).toEqual([1, 2, 3, 4, 5, 6, 7])
  })

  it('makes a record a dead letter if there was no token for a day', async () => {
    const settled: unknown[] = []
    const day = 86_400_000
    const record = { position: 0, state: 'open', answer: undefined, reason: undefined } as const
    const records = [{ ...record, retry: undefined, superseded: false, attempts: 1 }]
    const { clock, context } = startRecovery(
      {
        load: (batch) => Promise.resolve({ ...storedOf(batch), receivedMs: 0, records }),
        settle: (batch, outcomes) => {
          settled.push(
            batch,
            ...outcomes.map(({ state, reason, deadLetter }) => ({ state, reason, deadLetter })),
          )
          return Promise.resolve()
        },
      },
      () => Promise.reject(new AdapterError('ADP_UPSTREAM_UNAVAILABLE', 'No token.')),
    )
    context.orphans.set(1_000, { lease: 1, after: new Map([[0, []]]), sinceMs: 0 })
    await clock.pass(20_000)
    expect(settled).toEqual([])
    await clock.pass(day)
    expect(settled).toEqual([1_000, { state: 'unknown', reason: 'noToken', deadLetter: true }])
    expect([...context.orphans.keys()]).toEqual([])
  })

  it('retries the settlement of a record until the journal stores it', async () => {
    const settled: unknown[] = []
    const due = [{ batch: 1_000, positions: [0] }]
    let failures = 2
    const { clock, context } = startRecovery(
      {
        due: () => Promise.resolve(due.splice(0)),
        reopen: () => Promise.resolve({ lease: 1, after: new Map([[0, []]]) }),
        load: (batch) => {
          const record = { position: 0, answer: undefined, reason: undefined, retry: undefined } as const
          const records = [{ ...record, state: 'open' as const, superseded: false, attempts: 1 }]
          return Promise.resolve({ ...storedOf(batch), records })
        },
        settle: (batch, outcomes) => {
          if (failures-- > 0)
            return Promise.reject(new AdapterError('ADP_JOURNAL_UNAVAILABLE', 'The disk is full.'))
          settled.push(batch, ...outcomes.map(({ state, reason }) => ({ state, reason })))
          return Promise.resolve()
        },
      },
      () => Promise.resolve(here),
    )
    await clock.pass(4_000)
    expect([settled, [...context.orphans.keys()]]).toEqual([[], [1_000]])
    await clock.pass(12_000)
    expect(settled).toEqual([1_000, { state: 'unknown', reason: 'unreadable' }])
    expect([...context.orphans.keys()]).toEqual([])
  })

  it('drops the orphans of a lost lease, and keeps the orphans of the current lease', async () => {
    let lease = 1
    const { clock, context } = startRecovery({
      lease: () => lease,
      load: () => Promise.reject(new AdapterError('ADP_JOURNAL_UNAVAILABLE', 'Later.')),
    })
    await clock.pass(1)
    lease = 2
    context.orphans.set(1, { lease: 1, after: new Map(), sinceMs: 0 })
    context.orphans.set(2, { lease: 2, after: new Map(), sinceMs: 0 })
    await clock.pass(1_000)
    expect([...context.orphans.keys()]).toEqual([2])
  })

  it('tells the journal which batches this process is working on, and takes over abandoned batches', async () => {
    const attended: boolean[] = []
    const { clock, context } = startRecovery({
      findAbandoned: (isAttended) => {
        attended.push(isAttended(3), isAttended(4), isAttended(5))
        return Promise.resolve([{ batch: 6, lease: 1, after: new Map([[0, []]]) }])
      },
    })
    const claim = context.active.claim(3, [0], 1)
    context.orphans.set(4, { lease: 1, after: new Map(), sinceMs: 0 })
    await clock.pass(1)
    expect([attended, [...context.orphans.keys()]]).toEqual([[true, true, false], [4, 6]]) // prettier-ignore
    claim.releaseAll()
  })

  it('begins no batch whose records all wait for older orphans', async () => {
    const { clock, context, loaded } = startRecovery({})
    context.orphans.set(1, { lease: 1, after: new Map([[0, []]]), sinceMs: 0 })
    context.orphans.set(1_000, { lease: 1, after: new Map([[0, [{ batch: 1, position: 0 }]]]), sinceMs: 0 })
    await clock.pass(3_000)
    expect(loaded).toEqual([1])
    context.orphans.delete(1)
    await clock.pass(1_000)
    expect([loaded, [...context.orphans.keys()]]).toEqual([[1, 1_000], []])
  })

  it('begins a batch as soon as the older orphan before it has ended', async () => {
    const { clock, context } = startRecovery({})
    for (const batch of numbers(64).reverse()) {
      const older = batch === 1 ? [] : [{ batch: 999 + batch, position: 0 }]
      context.orphans.set(1_000 + batch, { lease: 1, after: new Map([[0, older]]), sinceMs: 0 })
    }
    await clock.pass(1_001)
    // Keeps the clock below 2 s, because recovery searches for work again at 2 s.
    for (let at = 0; at < 90; at += 1) await clock.pass(10)
    expect([...context.orphans.keys()]).toEqual([])
  })

  it('begins no batch while another run of this process works on records of that batch', async () => {
    const { clock, context, loaded } = startRecovery({})
    const claim = context.active.claim(1_000, [0], 1)
    context.orphans.set(1_000, { lease: 1, after: new Map([[1, []]]), sinceMs: 0 })
    await clock.pass(3_000)
    expect(loaded).toEqual([])
    claim.releaseAll()
    await clock.pass(1_000)
    expect(loaded).toEqual([1_000])
  })

  it('forgets an orphan if its batch is no longer stored', async () => {
    const { clock, context } = startRecovery({ load: () => Promise.resolve(undefined) })
    context.orphans.set(1, { lease: 1, after: new Map(), sinceMs: 0 })
    await clock.pass(2_000)
    expect([...context.orphans.keys()]).toEqual([])
  })
})

/** Runs recovery on orphans 1 and 2, which wait for credentials, and which delay newer records for longer than the read-back time. */
async function holdUp(own: Partial<Journal>, busy: readonly number[] = []) {
  const settled: unknown[] = []
  const recovery = startRecovery({
    blocking: (batches) => Promise.resolve(batches.map((batch) => ({ batch, position: 0 }))),
    settle: (batch, outcomes: readonly Settled[]) => {
      settled.push(...outcomes.map(({ position, state }) => [batch, position, state]))
      return Promise.resolve()
    },
    ...own,
  })
  const { clock, context, log } = recovery
  const after = (...positions: number[]) => new Map(positions.map((position) => [position, []]))
  context.orphans.set(1, { lease: 1, sinceMs: 0, after: after(0) })
  context.orphans.set(2, { lease: 1, sinceMs: 0, after: after(0, 1) })
  await clock.pass(1_001)
  for (const batch of busy) context.active.claim(batch, [0], 1)
  await clock.pass(3_000)
  return {
    settled,
    codes: [...new Set(log.flatMap((line) => /ADP_\w+/.exec(line) ?? []))],
    left: [...context.orphans].map(([batch, { after }]) => [batch, [...after.keys()]]),
  }
}

const failing = (code: 'ADP_JOURNAL_LOST' | 'ADP_JOURNAL_UNAVAILABLE'): Partial<Journal> => ({
  settle: () => Promise.reject(new AdapterError(code, 'no')),
})
const [all, none] = [[[1, [0]], [2, [0, 1]]], []] // prettier-ignore

it.each<[string, Partial<Journal>, number[], object]>([
  ['ends records for which newer records have waited too long, and keeps the other records of their batch', {}, [], { settled: [[1, 0, 'unknown'], [2, 0, 'unknown']], left: [[2, [1]]] }],
  ['hands the orphans over to an instance that asks for them', { handOver: (held) => Promise.resolve(held) }, [], { settled: none, left: none }],
  ['does not end records of a batch on which this process is working', {}, [1, 2], { settled: none, left: all }],
  ['does not end records that are not orphans of this instance', { blocking: () => Promise.resolve([{ batch: 1, position: 5 }]) }, [], { settled: none, left: all }],
  ['forgets a batch that another instance has taken over', failing('ADP_JOURNAL_LOST'), [], { codes: none, left: [[2, [1]]] }],
  ['reports a failure of the journal and keeps the orphans', failing('ADP_JOURNAL_UNAVAILABLE'), [], { codes: ['ADP_JOURNAL_UNAVAILABLE'], left: all }],
])('recovery of orphans without credentials %s', async (_name, own, busy, expected) => {
  expect(await holdUp(own, busy)).toMatchObject(expected)
}) // prettier-ignore
