import { describe, expect } from 'vitest'

import { batchOf, beginNew, confirmed, START_MS } from '../batches.ts'
import type { Subject } from './subject.ts'

export function describeUnsettled({ name, test }: Subject): void {
  describe(`a journal in ${name} (unsettled)`, () => {
    test('counts for each partner the records that are open or have a retry time', async (journal) => {
      expect([...(await journal.unsettled())]).toEqual([])
      const acme = await beginNew(journal, batchOf(['a', 'b', 'c', 'd', 'e']))
      await beginNew(journal, batchOf(['f'], { partner: 'brill' }))
      const calm = await beginNew(journal, batchOf(['g'], { partner: 'calm' }))
      await journal.settle(calm, [confirmed(0)])
      expect(Object.fromEntries(await journal.unsettled())).toEqual({ acme: 5, brill: 1 })
      await journal.settle(acme, [
        confirmed(0),
        { position: 1, state: 'unknown', answer: undefined, retry: START_MS + 5 },
        { position: 2, state: 'parked', answer: undefined, retry: START_MS + 5 },
        // These two records become open again only if the client resends the batch.
        { position: 3, state: 'unknown', answer: undefined },
        { position: 4, state: 'notApplied', answer: undefined, retry: 'resend' },
      ])
      expect(Object.fromEntries(await journal.unsettled())).toEqual({ acme: 2, brill: 1 })
    })
  })
}
