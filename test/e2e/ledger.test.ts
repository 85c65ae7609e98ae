import { expect, test } from 'vitest'

import { createNoJournal } from '../../src/journal/index.ts'
import { batchOf, flatRecord, flatRecords, guid, postBatch } from '../support/batch-request.ts'
import { readSamples } from '../support/read-samples.ts'
import { echoRecord, replyWith, startUpstream } from '../support/scripted-upstream.ts'
import { startAdapter } from '../support/start-adapter.ts'
import { journalFile } from './support/journal-file.ts'

const [refusedId, lostId, heldId, busyId] = [guid(101), guid(102), guid(103), guid(104)]

function ledgerOf(samples: ReadonlyMap<string, number>): Record<string, number | undefined> {
  const state = (name: string): number | undefined =>
    samples.get(`markbridge_journal_records{partner="acme",state="${name}"}`)
  return {
    received: samples.get('markbridge_journal_received{partner="acme"}'),
    confirmed: state('confirmed'),
    refused: state('refused'),
    unknown: state('unknown'),
    parked: state('parked'),
    open: state('open'),
  }
}

test('the metrics show for each record whether it is confirmed, refused, unknown, parked or open', async () => {
  const { promise: held, resolve: release } = Promise.withResolvers<undefined>()
  const upstream = await startUpstream(async (seen, response) => {
    const { body } = seen
    if (body.includes(refusedId))
      await replyWith(400, { error: { code: 'X', message: 'no' } })(seen, response)
    else if (body.includes(lostId)) response.socket?.resetAndDestroy()
    else if (body.includes(busyId)) await replyWith(503, '')(seen, response)
    else {
      if (body.includes(heldId)) await held
      await echoRecord(seen, response)
    }
  })
  const adapter = await startAdapter(upstream.url, {
    journal: journalFile(),
    partners: [{ id: 'acme', match: { any: true }, v3: { budgetMs: 1_500 } }],
  })
  const learner = (id: string): object => flatRecord(0, { Learner: id })
  // Of these records, V3 accepts five and rejects one, the adapter rejects one, and one loses its reply.
  const usual = batchOf([...flatRecords(5), learner(refusedId), '{', learner(lostId)])
  await postBatch(adapter, usual)
  // The ids of this batch differ, so its client gets 200, and the record that V3 answers with 503 is parked.
  const differing = { batch: 'batch_a', changeset: 'changeset_b', boundary: 'batch_c' }
  await postBatch(adapter, batchOf([flatRecord(6), learner(busyId)], differing))
  const slow = postBatch(adapter, batchOf([learner(heldId)], { changeset: 'changeset_d' }))
  await upstream.arrived(10)

  const under = ledgerOf(await readSamples(adapter))
  expect(under).toEqual({ received: 11, confirmed: 6, refused: 2, unknown: 1, parked: 1, open: 1 })
  release(undefined)
  await slow
  await postBatch(adapter, batchOf(flatRecords(5), { batch: 'batch_e' }))
  await postBatch(adapter, batchOf(flatRecords(5), { batch: 'batch_e' }))
  const samples = await readSamples(adapter)
  expect(ledgerOf(samples)).toEqual({
    received: 16,
    confirmed: 12,
    refused: 2,
    unknown: 1,
    parked: 1,
    open: 0,
  })
  expect(samples.get('markbridge_batches_replayed_total{partner="acme"}')).toBe(1)
  expect(samples.get('markbridge_journal_available')).toBe(1)
})

test('/readyz says why the adapter refuses writes while the journal fails', async () => {
  let available = true
  let leased = true
  const adapter = await startAdapter(
    'http://127.0.0.1:1',
    {},
    {
      openJournal: () =>
        Promise.resolve({
          ...createNoJournal(),
          isAvailable: () => available,
          lease: () => (leased ? 1 : undefined),
          balances: () => Promise.reject(new Error('nobody answers')),
        }),
    },
  )
  const ask = async (): Promise<unknown> => {
    const { status, text } = await adapter.request('GET', '/readyz')
    return [status, JSON.parse(text)]
  }
  expect(await ask()).toEqual([200, { status: 'ready' }])
  leased = false
  expect(await ask()).toEqual([503, { status: 'journal lease lost' }])
  available = false
  expect(await ask()).toEqual([503, { status: 'journal unavailable' }])
  const { text: metrics } = await adapter.request('GET', '/metrics')
  expect(metrics).toContain('\nmarkbridge_journal_available 0\n')
  expect(metrics).not.toContain('markbridge_journal_records{')
})
