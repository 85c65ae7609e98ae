import { describe, expect } from 'vitest'

import { openInspector } from '../../src/journal/index.ts'
import { batchOf, type BatchText, flatRecord, guid, postBatch, statusesOf } from '../support/batch-request.ts'
import { eachDatabase } from '../support/each-database.ts'
import { readSamples } from '../support/read-samples.ts'
import { echoRecord, replyWith, startUpstream } from '../support/scripted-upstream.ts'
import { startAdapter } from '../support/start-adapter.ts'

const registerOf = (register: number, size: number, name = `batch_${register}`): BatchText =>
  batchOf(
    Array.from({ length: size }, (_, at) => flatRecord(0, { Learner: guid(register * 1_000 + at) })),
    { batch: name, changeset: `changeset_${register}` },
  )

async function startFailing() {
  const trouble = { serves: false }
  const { url } = await startUpstream((seen, response) =>
    (trouble.serves ? echoRecord : replyWith(503, '', { 'Retry-After': '600' }))(seen, response),
  )
  return { trouble, url }
}

/** Starts an adapter with a journal in front of V3. `states` returns the number of records in each state. */
async function startOver(v3: string, journal: string) {
  const adapter = await startAdapter(v3, {
    journal: { url: journal },
    partners: [{ id: 'acme', match: { any: true } }],
  })
  const states = async (): Promise<Record<string, number>> => {
    const named = [...(await readSamples(adapter))].flatMap(([name, value]) => {
      const [, state] = /^markbridge_journal_records\{partner="acme",state="(\w+)"\}$/.exec(name) ?? []
      return state === undefined || value === 0 ? [] : [[state, value] as const]
    })
    return Object.fromEntries(named)
  }
  return { adapter, states }
}

describe.each(eachDatabase())('a record that V3 never judged, with a journal in %s', (_name, database) => {
  database.test('ends as not applied if the client never resends it (3,600 marks)', async (url) => {
    const { adapter, states } = await startOver((await startFailing()).url, url)
    for (let register = 0; register < 12; register += 1)
      expect(new Set(statusesOf(await postBatch(adapter, registerOf(register, 300))))).toEqual(new Set([503]))
    expect(await states()).toEqual({ notApplied: 3_600 })
    const samples = await readSamples(adapter)
    expect(samples.get('markbridge_records_total{partner="acme",outcome="not_applied"}')).toBe(3_600)
    expect(samples.get('markbridge_records_total{partner="acme",outcome="refused"}')).toBe(0)
    const inspector = await openInspector(url)
    const missing = await inspector.batches({ state: 'notApplied', limit: 100 })
    expect(missing.map(({ states: { notApplied } }) => notApplied)).toEqual(Array(12).fill(300))
    expect(await inspector.batches({ state: 'refused', limit: 100 })).toEqual([])
    expect(await inspector.balances()).toMatchObject([{ received: 3_600, notApplied: 3_600, holds: true }])
    await inspector.close()
  })

  database.test(
    'is posted if the client resends it, and superseded if a new batch has a newer mark',
    async (url) => {
      const v3 = await startFailing()
      const { adapter, states } = await startOver(v3.url, url)
      await postBatch(adapter, registerOf(1, 3))
      await postBatch(adapter, registerOf(2, 3))
      v3.trouble.serves = true
      expect(statusesOf(await postBatch(adapter, registerOf(1, 3)))).toEqual([201, 201, 201])
      expect(await states()).toEqual({ confirmed: 3, notApplied: 3 })
      expect(statusesOf(await postBatch(adapter, registerOf(2, 3, 'batch_new')))).toEqual([201, 201, 201])
      // The new batch supersedes the three older records, which then count as refused.
      expect(await states()).toEqual({ confirmed: 6, refused: 3 })
    },
  )
})
