import fc from 'fast-check'
import { describe, expect, it } from 'vitest'

import type { Journal, Settled } from '../../../src/journal/index.ts'
import { batchOf, START_MS } from '../batches.ts'
import { followScript, scripts } from '../model.ts'
import type { Subject } from './subject.ts'

export function describeSequences({ name, runs, withOpener, test }: Subject): void {
  describe(`a journal in ${name} (random calls)`, () => {
    test('counts each record once while two instances call the journal at random for the same batches', async (journal, opener) => {
      const journals = [journal, await opener.open()]
      const states = ['confirmed', 'refused', 'notApplied', 'unknown', 'parked'] as const
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
            begun.kind === 'new' ? all : [...(await own.reopen(begun.batch, all, undefined)).after.keys()]
          const outcomes = opened.map((position): Settled => {
            const state = states[pick(4)] ?? 'confirmed'
            return {
              position,
              state,
              answer: 'answer',
              retry: state === 'confirmed' ? undefined : START_MS,
            }
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
      // The tables contain every record that the totals count.
      for (const { received, kept } of balances)
        expect(Object.values(kept).reduce((sum, n) => sum + n, 0)).toBe(received)
    })

    it('returns the same results as a simple model, and counts each record once', async () => {
      await fc.assert(
        fc.asyncProperty(scripts, (script) =>
          withOpener(async (opener) => followScript(await opener.open(), script)),
        ),
        { numRuns: runs },
      )
    })
  })
}
