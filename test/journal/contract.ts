import fc from 'fast-check'
import { describe, expect, it } from 'vitest'

import type { Journal, JournalInspector, Settled, StoredBatch } from '../../src/journal/index.ts'
import type { JournalOptions } from '../../src/journal/open-journal.ts'
import { afterOf, batchOf, beginNew, confirmed, START_MS, statesOf } from './batches.ts'
import { followScript, scripts } from './model.ts'

/** Opens journals for one test: all on the same new database. */
export interface Opener {
  open(options?: Partial<JournalOptions>): Promise<Journal>
  inspect(): Promise<JournalInspector>
}

const textOf = (stored: StoredBatch | undefined): string => Buffer.from(stored?.payload ?? []).toString()
const HOUR_MS = 3_600_000
const key = { id: 'k1', key: Buffer.alloc(32, 7) }

/** What every journal with a store promises (src/journal/journal.ts). `runs`: how many random
 * sequences of calls it answers; `withOpener` closes what a test leaves open. */
export function describeJournal(
  name: string,
  runs: number,
  withOpener: (work: (opener: Opener) => Promise<void>) => Promise<void>,
): void {
  const promise = (what: string, work: (journal: Journal, opener: Opener) => Promise<void>): void =>
    it(what, () => withOpener(async (opener) => work(await opener.open(), opener)))

  describe(`${name}: begin`, () => {
    promise('keeps a batch with everything that finishes it', async (journal) => {
      const batch = await beginNew(
        journal,
        batchOf(['a', 'b'], {
          records: [{ key: 'a' }, { key: 'b', refused: { answer: 'no é', reason: 'ADP_FIELD' } }],
        }),
      )
      const record = { again: undefined, superseded: false, attempts: 1 }
      const stored = await journal.load(batch)
      expect({ ...stored, payload: textOf(stored) }).toEqual({
        batch,
        partner: 'acme',
        receivedMs: START_MS,
        payload: 'payload of a,b',
        credentials: undefined,
        records: [
          { ...record, position: 0, state: 'open', answer: undefined, reason: undefined },
          { ...record, position: 1, state: 'refused', answer: 'no é', reason: 'ADP_FIELD' },
        ],
      })
      expect(await journal.load(batch + 1)).toBeUndefined()
    })

    promise('knows the same batch again, and whether it is still running', async (journal) => {
      const again = batchOf(['a', 'b'], { name: 'one' })
      const batch = await beginNew(journal, again)
      expect(await journal.begin(again)).toEqual({ kind: 'known', batch, running: true })
      await journal.settle(batch, [confirmed(0)])
      expect(await journal.begin(again)).toEqual({ kind: 'known', batch, running: true })
      await journal.settle(batch, [confirmed(1)])
      expect(await journal.begin(again)).toEqual({ kind: 'known', batch, running: false })
    })

    promise('knows one of two that come at the same moment', async (journal) => {
      const twice = await Promise.all([1, 2].map(() => journal.begin(batchOf(['a'], { name: 'one' }))))
      expect(twice.map(({ kind }) => kind)).toEqual(['new', 'known'])
    })

    promise(
      'takes nothing for known that differs in partner, ids or content, or has no ids',
      async (journal) => {
        const first = await beginNew(journal, batchOf(['a'], { name: 'one' }))
        const others = [
          batchOf(['a'], { name: 'one', partner: 'other' }),
          batchOf(['a'], { name: 'two' }),
          batchOf(['a']),
          batchOf(['a']),
        ]
        for (const other of others)
          expect(await journal.begin(other)).toMatchObject({ kind: 'new', idsReused: false })
        expect(await journal.begin(batchOf(['b'], { name: 'one' }))).toMatchObject({
          kind: 'new',
          idsReused: true,
        })
        // A, B, A with constant ids: the last one is a new intent.
        const third = await journal.begin(batchOf(['a'], { name: 'one' }))
        expect(third).toMatchObject({ kind: 'new', idsReused: true })
        expect(third.batch).toBeGreaterThan(first)
      },
    )

    promise('forgets that a batch came when the time to replay it is over', async (journal) => {
      const batch = await beginNew(journal, batchOf(['a'], { name: 'one' }))
      const later = (hours: number) =>
        journal.begin(batchOf(['a'], { name: 'one', receivedMs: START_MS + hours * HOUR_MS }))
      expect(await later(23)).toEqual({ kind: 'known', batch, running: true })
      expect(await later(24)).toMatchObject({ kind: 'new', idsReused: false })
    })

    promise('tells the older open records of the same keys, not those of the same batch', async (journal) => {
      const one = await beginNew(journal, batchOf(['a', 'b', 'a']))
      const begun = await journal.begin(batchOf(['c', 'a', 'b']))
      expect(afterOf(begun)).toEqual({
        1: [
          { batch: one, position: 0 },
          { batch: one, position: 2 },
        ],
        2: [{ batch: one, position: 1 }],
      })
      await journal.settle(one, [confirmed(0), { ...confirmed(1), state: 'unknown', again: START_MS }])
      expect(afterOf(await journal.begin(batchOf(['a', 'b'])))).toEqual({
        0: [
          { batch: one, position: 2 },
          { batch: begun.batch, position: 1 },
        ],
        1: [{ batch: begun.batch, position: 2 }],
      })
      const all = [0, 1, 2].map((position) => ({ batch: one, position }))
      expect(await journal.stillOpen(all)).toEqual([{ batch: one, position: 2 }])
    })
  })

  describe(`${name}: settle`, () => {
    promise('keeps outcomes, and takes the same ones again without a change', async (journal) => {
      const batch = await beginNew(journal, batchOf(['a', 'b', 'c']))
      const outcomes: Settled[] = [
        {
          position: 2,
          state: 'unknown',
          answer: undefined,
          reason: 'ADP_OUTCOME_UNKNOWN',
          again: START_MS + 5,
        },
        { position: 0, state: 'refused', answer: 'bad', reason: 'ATT_VAL_2', deadLetter: true },
        { position: 1, state: 'refused', answer: 'later', reason: 'ADP_BUDGET_EXCEEDED', again: 'resend' },
      ]
      await journal.settle(batch, outcomes)
      await journal.settle(batch, outcomes)
      const stored = await journal.load(batch)
      expect(
        stored?.records.map(({ state, answer, reason, again }) => [state, answer, reason, again]),
      ).toEqual([
        ['refused', 'bad', 'ATT_VAL_2', undefined],
        ['refused', 'later', 'ADP_BUDGET_EXCEEDED', 'resend'],
        ['unknown', undefined, 'ADP_OUTCOME_UNKNOWN', START_MS + 5],
      ])
      expect(await journal.balances()).toEqual([
        { partner: 'acme', received: 3, open: 0, confirmed: 0, refused: 2, unknown: 1, parked: 0 },
      ])
    })

    promise('takes times with fractions, and any text for an answer or a reason', async (journal) => {
      const batch = await beginNew(journal, batchOf(['a'], { receivedMs: START_MS + 0.4 }))
      const odd = 'é\u0000\ud800\n😀'
      const outcome: Settled = {
        position: 0,
        state: 'parked',
        answer: odd,
        reason: `X\u0000${'y'.repeat(300)}`,
        again: START_MS + 0.5,
      }
      await journal.settle(batch, [outcome])
      await journal.settle(batch, [outcome])
      expect(await journal.load(batch)).toMatchObject({
        receivedMs: START_MS,
        // A half of a pair is no character: bytes have none for it.
        records: [{ answer: 'é\u0000\ufffd\n😀', reason: `X${'y'.repeat(199)}`, again: START_MS + 1 }],
      })
      expect(await journal.due(START_MS + 0.9, 1)).toEqual([])
      expect(await journal.due(START_MS + 1.1, 1)).toEqual([{ batch, positions: [0] }])
    })

    promise('refuses as a whole what is already settled otherwise', async (journal) => {
      const batch = await beginNew(journal, batchOf(['a', 'b']))
      await journal.settle(batch, [confirmed(1)])
      const other: Settled[] = [confirmed(0), { position: 1, state: 'refused', answer: 'no' }]
      const [lost, kept] = await Promise.allSettled([
        journal.settle(batch, other),
        journal.begin(batchOf(['c'])),
      ])
      expect(lost).toMatchObject({ status: 'rejected', reason: { code: 'ADP_JOURNAL_LOST' } })
      expect(kept.status).toBe('fulfilled')
      expect(await statesOf(journal, batch)).toEqual(['open', 'confirmed'])
      await expect(journal.settle(batch + 100, [confirmed(0)])).rejects.toMatchObject({
        code: 'ADP_JOURNAL_LOST',
      })
    })

    promise('supersedes older records of the key, once a newer one is confirmed', async (journal) => {
      const again = START_MS
      const old = await beginNew(journal, batchOf(['a', 'b', 'c', 'd']))
      await journal.settle(old, [
        { position: 0, state: 'parked', answer: 'ok', reason: 'ATT_VAL_2', again },
        { position: 1, state: 'unknown', answer: '?', reason: 'ADP_OUTCOME_UNKNOWN', again },
        { position: 2, state: 'refused', answer: 'later', again: 'resend' },
      ])
      const newer = await beginNew(journal, batchOf(['a', 'b', 'c', 'd'], { partner: 'other' }))
      await journal.settle(
        newer,
        [0, 1, 2].map((position) => confirmed(position)),
      )
      expect(await statesOf(journal, old)).toEqual([
        'refused, superseded',
        'unknown, superseded',
        'refused, superseded',
        'open',
      ])
      expect((await journal.load(old))?.records[0]).toMatchObject({ reason: 'superseded', answer: 'ok' })
      expect(await journal.due(START_MS + HOUR_MS, 10)).toEqual([])
      expect(await journal.reopen(old, [0, 1, 2], undefined)).toEqual(new Map())
      expect(await journal.balances()).toEqual([
        { partner: 'acme', received: 4, open: 1, confirmed: 0, refused: 2, unknown: 1, parked: 0 },
        { partner: 'other', received: 4, open: 1, confirmed: 3, refused: 0, unknown: 0, parked: 0 },
      ])
    })

    promise('supersedes a record once, also where its key was confirmed twice', async (journal, opener) => {
      const old = await beginNew(journal, batchOf(['a']))
      await journal.settle(old, [{ position: 0, state: 'parked', answer: 'ok', again: START_MS }])
      const newer = await beginNew(journal, batchOf(['a', 'a']))
      await journal.settle(newer, [confirmed(0), confirmed(1)])
      expect(await journal.balances()).toMatchObject([{ received: 3, confirmed: 2, refused: 1, parked: 0 }])
      expect(await (await opener.inspect()).balances()).toMatchObject([{ holds: true }])
    })

    promise('leaves a record alone when the newer one was refused', async (journal) => {
      const old = await beginNew(journal, batchOf(['a']))
      await journal.settle(old, [{ position: 0, state: 'parked', answer: 'ok', again: START_MS }])
      const newer = await beginNew(journal, batchOf(['a']))
      await journal.settle(newer, [{ position: 0, state: 'refused', answer: 'no' }])
      expect(await statesOf(journal, old)).toEqual(['parked'])
    })
  })

  describe(`${name}: reopen`, () => {
    promise(
      'opens what is due or may be resent, and keeps what it was until it is settled anew',
      async (journal) => {
        const old = await beginNew(journal, batchOf(['z', 'a']))
        const batch = await beginNew(journal, batchOf(['a', 'b', 'c', 'd']))
        await journal.settle(batch, [
          { position: 0, state: 'unknown', answer: 'first', reason: 'ADP_OUTCOME_UNKNOWN', again: START_MS },
          { position: 1, state: 'refused', answer: 'final' },
          confirmed(2),
          { position: 3, state: 'refused', answer: 'later', again: 'resend' },
        ])
        expect(await journal.reopen(batch, [0, 1, 2, 3, 4], undefined)).toEqual(
          new Map([
            [0, [{ batch: old, position: 1 }]],
            [3, []],
          ]),
        )
        expect((await journal.load(batch))?.records[0]).toEqual({
          position: 0,
          state: 'open',
          answer: 'first',
          reason: 'ADP_OUTCOME_UNKNOWN',
          again: START_MS,
          superseded: false,
          attempts: 2,
        })
        expect(await journal.reopen(batch, [0, 3], undefined)).toEqual(new Map())
        await journal.settle(batch, [confirmed(0, 'second')])
        expect((await journal.load(batch))?.records[0]).toMatchObject({
          answer: 'second',
          attempts: 2,
          again: undefined,
        })
        expect(await journal.balances()).toEqual([
          { partner: 'acme', received: 6, open: 3, confirmed: 2, refused: 1, unknown: 0, parked: 0 },
        ])
      },
    )

    promise('leaves out a record with a newer open one of its key', async (journal) => {
      const old = await beginNew(journal, batchOf(['a', 'b']))
      await journal.settle(
        old,
        [0, 1].map((position) => ({ position, state: 'parked', answer: 'ok', again: START_MS })),
      )
      await beginNew(journal, batchOf(['a']))
      expect(await journal.reopen(old, [0, 1], undefined)).toEqual(new Map([[1, []]]))
    })

    promise('leaves a batch alone that another instance is working on', async (journal, opener) => {
      const batch = await beginNew(journal, batchOf(['a', 'b']))
      await journal.settle(batch, [{ position: 0, state: 'parked', answer: 'ok', again: START_MS }])
      const other = await opener.open()
      expect(await other.reopen(batch, [0], undefined)).toEqual(new Map())
      await journal.settle(batch, [confirmed(1)])
      expect(await other.reopen(batch, [0], undefined)).toEqual(new Map([[0, []]]))
      await expect(journal.settle(batch, [confirmed(0)])).rejects.toMatchObject({ code: 'ADP_JOURNAL_LOST' })
      await other.settle(batch, [confirmed(0)])
    })

    promise('lists what is due, longest wait first', async (journal) => {
      const one = await beginNew(journal, batchOf(['a', 'b', 'c']))
      const two = await beginNew(journal, batchOf(['d', 'e']))
      const parked = (position: number, waitMs: number): Settled => ({
        position,
        state: 'parked',
        answer: 'ok',
        again: START_MS + waitMs,
      })
      await journal.settle(one, [parked(0, 30), parked(1, 10), parked(2, 99)])
      await journal.settle(two, [parked(0, 5), parked(1, 20)])
      expect(await journal.due(START_MS + 30, 10)).toEqual([
        { batch: two, positions: [0, 1] },
        { batch: one, positions: [1, 0] },
      ])
      expect(await journal.due(START_MS + 30, 2)).toEqual([
        { batch: two, positions: [0] },
        { batch: one, positions: [1] },
      ])
      expect(await journal.due(START_MS, 10)).toEqual([])
    })
  })

  describe(`${name}: instances`, () => {
    promise('hands over what an instance left open, once', async (journal, opener) => {
      const other = await opener.open()
      const done = await beginNew(other, batchOf(['a']))
      await other.settle(done, [confirmed(0)])
      const before = await beginNew(journal, batchOf(['b']))
      const left = await beginNew(other, batchOf(['a', 'b', 'c']))
      await other.settle(left, [confirmed(0)])
      expect(await journal.takeOver()).toEqual([])
      await other.close()
      const after = new Map([
        [1, [{ batch: before, position: 0 }]],
        [2, []],
      ])
      expect(await journal.takeOver()).toEqual([{ batch: left, after }])
      expect(await journal.takeOver()).toEqual([])
      expect(await statesOf(journal, left)).toEqual(['confirmed', 'open', 'open'])
      await journal.settle(left, [confirmed(1), confirmed(2)])
    })

    promise('orders the writes of all instances', async (journal, opener) => {
      const other = await opener.open()
      const one = await beginNew(journal, batchOf(['a']))
      const begun = await other.begin(batchOf(['a']))
      expect(afterOf(begun)).toEqual({ 0: [{ batch: one, position: 0 }] })
      expect(await other.stillOpen([{ batch: one, position: 0 }])).toEqual([{ batch: one, position: 0 }])
      expect(await other.begin(batchOf(['x'], { name: 'one' }))).toMatchObject({ kind: 'new' })
      expect(await journal.begin(batchOf(['x'], { name: 'one' }))).toMatchObject({
        kind: 'known',
        running: true,
      })
      await journal.settle(one, [confirmed(0)])
      expect(await other.stillOpen([{ batch: one, position: 0 }])).toEqual([])
    })
  })

  describe(`${name}: credentials`, () => {
    it('keeps them encrypted until the last record is final', () =>
      withOpener(async (opener) => {
        const journal = await opener.open({ keys: [key] })
        const batch = await beginNew(journal, batchOf(['a', 'b'], { credentials: 'bearer one' }))
        const credentials = async () => (await journal.load(batch))?.credentials
        expect(await credentials()).toBe('bearer one')
        await journal.settle(batch, [
          { position: 0, state: 'refused', answer: 'later', again: 'resend' },
          confirmed(1),
        ])
        expect(await credentials()).toBe('bearer one')
        await journal.reopen(batch, [0], 'bearer two')
        expect(await credentials()).toBe('bearer two')
        await journal.settle(batch, [confirmed(0)])
        expect(await credentials()).toBeUndefined()
      }))

    promise('keeps none without a key', async (journal) => {
      const batch = await beginNew(journal, batchOf(['a'], { credentials: 'bearer one' }))
      expect((await journal.load(batch))?.credentials).toBeUndefined()
    })
  })

  describe(`${name}: any sequence of calls`, () => {
    promise('counts each record once when two instances do all at the same time', async (journal, opener) => {
      const journals = [journal, await opener.open()]
      const states = ['confirmed', 'refused', 'unknown', 'parked'] as const
      const client = async (own: Journal, seed: number): Promise<void> => {
        const [numbers] = fc.sample(fc.array(fc.nat(999), { minLength: 200, maxLength: 200 }), {
          seed,
          numRuns: 1,
        })
        const pick = (below: number): number => (numbers?.pop() ?? 0) % below
        for (let round = 0; round < 6; round += 1) {
          const keys = Array.from({ length: 1 + pick(5) }, () => `key ${pick(6)}`)
          const begun = await own.begin(
            batchOf(keys, { name: `batch ${pick(9)}`, partner: `partner ${pick(2)}` }),
          )
          const all = [...keys.keys()]
          const opened =
            begun.kind === 'new' ? all : [...(await own.reopen(begun.batch, all, undefined)).keys()]
          const outcomes = opened.map((position): Settled => {
            const state = states[pick(4)] ?? 'confirmed'
            return { position, state, answer: 'answer', again: state === 'confirmed' ? undefined : START_MS }
          })
          const half = outcomes.length >> 1
          await Promise.all([
            own.settle(begun.batch, outcomes.slice(0, half)),
            own.settle(begun.batch, outcomes.slice(half)),
          ])
        }
      }
      await Promise.all(
        journals.flatMap((own, index) => [1, 2, 3, 4].map((seed) => client(own, seed + index * 10))),
      )
      const balances = await (await opener.inspect()).balances()
      expect(balances.map(({ partner, open, holds }) => ({ partner, open, holds }))).toEqual([
        { partner: 'partner 0', open: 0, holds: true },
        { partner: 'partner 1', open: 0, holds: true },
      ])
      // Nothing was forgotten: every record that was counted is there.
      for (const { received, kept } of balances)
        expect(Object.values(kept).reduce((sum, n) => sum + n, 0)).toBe(received)
    })

    it('gives what a model of it gives, and counts each record once', async () => {
      await fc.assert(
        fc.asyncProperty(scripts, (script) =>
          withOpener(async (opener) => followScript(await opener.open(), script)),
        ),
        { numRuns: runs },
      )
    }, 60_000)
  })

  describe(`${name}: encryption`, () => {
    it('reads with every key of the list and writes with the first', () =>
      withOpener(async (opener) => {
        const [first, second] = [key, { id: 'k2', key: Buffer.alloc(32, 9) }]
        const before = await opener.open({ keys: [first] })
        const old = await beginNew(before, batchOf(['a']))
        await before.settle(old, [confirmed(0, 'old answer')])
        await before.close()
        const rotated = await opener.open({ keys: [second, first] })
        const stored = await rotated.load(old)
        expect(textOf(stored)).toBe('payload of a')
        expect(stored?.records[0]?.answer).toBe('old answer')
        const fresh = await beginNew(rotated, batchOf(['b']))
        await rotated.close()
        const faults: (readonly [JournalOptions['keys'], string])[] = [
          [[second], 'key k1'],
          [[first], 'key k2'],
          [[], 'key k1'],
          [[{ id: 'k1', key: Buffer.alloc(32, 8) }, second], 'id k1'],
          [[{ id: 'k1', key: Buffer.alloc(31) }], '32 bytes'],
        ]
        for (const [keys = [], text] of faults) {
          await expect(opener.open({ keys })).rejects.toMatchObject({
            code: 'ADP_CONFIGURATION',
            message: expect.stringContaining(text) as unknown,
          })
        }
        const last = await opener.open({ keys: [second, first] })
        expect(textOf(await last.load(fresh))).toBe('payload of b')
      }))
  })
}
