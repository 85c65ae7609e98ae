import { randomUUID } from 'node:crypto'

import { describe, expect, it, onTestFinished, vi } from 'vitest'

import { learnedName, parseLearned, propose } from '../../src/compare/learn/index.ts'
import { parseConfig } from '../../src/config/index.ts'
import { openRolloutStore } from '../../src/rollout/index.ts'
import { createSandbox } from '../../src/sandbox/index.ts'
import { batchOf, batchPath, flatRecord } from '../support/batch-request.ts'
import { readSamples } from '../support/read-samples.ts'
import { type Adapter, startAdapter } from '../support/start-adapter.ts'
import { journalFile } from './support/journal-file.ts'

const headers = { 'Ocp-Apim-Subscription-Key': 'sandbox', Authorization: 'bearer sandbox' }
const BATCHES = 4

interface Samples {
  readonly learners: readonly string[]
  readonly events: readonly string[]
  readonly codes: readonly { readonly id: string }[]
}

/** Posts a few batches, one of them with other ids, and stops the adapter, which keeps what it counted. */
async function use(adapter: Adapter, v3Url: string): Promise<void> {
  const reply = await fetch(`${v3Url}/_sandbox/samples`)
  const { learners, events, codes } = (await reply.json()) as Samples
  const record = (at: number): object =>
    flatRecord(at, { Learner: learners[at], AttendableEvent: events[0], SchoolAttendanceCode: codes[0]?.id })
  for (let at = 0; at < BATCHES; at += 1) {
    const batch = batchOf([record(at), flatRecord(at)], at === 0 ? { boundary: `batch_${randomUUID()}` } : {})
    await adapter.request('POST', batchPath, { headers: { ...headers, ...batch.headers }, body: batch.body })
  }
  await vi.waitFor(async () => {
    const samples = [...(await readSamples(adapter))]
    expect(samples.find(([name]) => name.startsWith('markbridge_compare_waiting'))?.[1]).toBe(0)
  })
  await adapter.app.close()
}

/** What is learned of a V2 at this address, by an adapter at `shadow`. */
async function learnedOf(v2Url: string, v3Url: string) {
  const journal = journalFile()
  const partner = { id: 'acme', match: { any: true }, stage: 'shadow' }
  const adapter = await startAdapter(v3Url, { v2: { baseUrl: v2Url }, partners: [partner], journal })
  await use(adapter, v3Url)
  const config = parseConfig({
    upstreams: { v3: { baseUrl: v3Url }, v2: { baseUrl: v2Url } },
    partners: [partner],
    journal,
  })
  const store = await openRolloutStore({ url: journal.url, keys: [] })
  onTestFinished(() => store.close())
  const [settings] = config.partners
  if (settings === undefined) throw new Error('no partner')
  const text = await store.readEvidence(learnedName('acme'))
  return { text, ...propose(parseLearned(text), settings) }
}

describe('compare learn, from what an adapter at shadow sees', () => {
  it('agrees with the legacy face of the sandbox but for its texts of errors, and sees how it answers other ids', async () => {
    const sandbox = createSandbox({ v2Port: 0 })
    const { v2Url, url } = await sandbox.listen()
    onTestFinished(() => sandbox.close())
    const { exchanges, proposals, text } = await learnedOf(v2Url, url)
    expect(exchanges.batch).toBe(BATCHES)
    const changes = proposals.filter(({ result }) => result === 'change')
    expect(changes.map(({ path, proposed }) => [path, proposed])).toEqual([
      ['errorMessages.ATT_VAL_2', 'The AttendableEvent of the record does not exist.'],
      ['errorMessages.ATT_VAL_3', 'The SchoolAttendanceCode of the record does not exist.'],
    ])
    expect(Object.fromEntries(proposals.map(({ path, result }) => [path, result]))).toMatchObject({
      layout: 'keep',
      'quirks.dataEnvelope': 'keep',
      'quirks.msgtypeResponse': 'keep',
    })
    expect(proposals.find(({ path }) => path === 'quirks.mismatch')?.evidence).toEqual([
      { seen: 'batches of other ids, answered without parts', count: 1 },
    ])
    expect(text).not.toMatch(/[0-9a-f]{8}-[0-9a-f]{4}/)
  })

  // An adapter with these settings is a V2 with these quirks.
  it.each([
    [{ layout: 'nested' }, { layout: 'nested' }],
    [{ quirks: { dataEnvelope: true } }, { 'quirks.dataEnvelope': true }],
    [{ quirks: { msgtypeResponse: true } }, { 'quirks.msgtypeResponse': true }],
  ])('finds %o', async (settings, expected) => {
    const sandbox = createSandbox()
    const { url } = await sandbox.listen()
    onTestFinished(() => sandbox.close())
    const partners = [{ id: 'v2', match: { any: true }, ...settings }]
    const v2 = await startAdapter(url, { partners })
    const { proposals } = await learnedOf(v2.url, url)
    const changes = proposals
      .filter(({ result }) => result === 'change')
      .map(({ path, proposed }) => [path, proposed])
    expect(Object.fromEntries(changes)).toMatchObject(expected)
  })
})
