import { randomUUID } from 'node:crypto'

import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { parse } from 'yaml'

import { learnedOf } from '../../src/compare/learn/learned.ts'
import { formatPatch, propose } from '../../src/compare/learn/propose.ts'
import { parseConfig } from '../../src/config/index.ts'
import { openRolloutStore } from '../../src/rollout/store/rollout-store.ts'
import { sandboxHeaders } from '../sandbox/start-sandbox.ts'
import { batchOf, batchPath, type BatchSpelling, flatRecord } from '../support/batch-request.ts'
import { readSamples } from '../support/read-samples.ts'
import { type Adapter, startAdapter } from '../support/start-adapter.ts'
import { type ComparedFaces, startFaces } from './support/compared-faces.ts'
import { journalFile } from './support/journal-file.ts'

const MAX_BATCHES = 20
const otherIds = (): BatchSpelling => ({ boundary: `batch_${randomUUID()}` })
const generic = { 'OData-MaxVersion': '4.0' }

/** Starts an adapter at `shadow` in front of the sandbox. `learned` returns the settings that `compare learn` then proposes. */
async function startLearning(faces: ComparedFaces, choices: object = {}) {
  const journal = journalFile()
  const partner = {
    ...{ id: 'acme', match: { any: true }, stage: 'shadow', compare: { settleMs: 400 } },
    ...choices,
  }
  const upstreams = { v3: { baseUrl: faces.v3Url }, v2: { baseUrl: faces.v2Url } }
  const adapter = await startAdapter(faces.v3Url, { v2: upstreams.v2, partners: [partner], journal })
  let batches = 0
  const post = async (
    records: readonly object[],
    spelling: BatchSpelling = {},
    headers: Record<string, string> = {},
  ): Promise<void> => {
    batches += 1
    const batch = batchOf(records, spelling)
    const all = { ...sandboxHeaders, ...batch.headers, ...headers }
    await adapter.request('POST', batchPath, { headers: all, body: batch.body })
  }
  /** Waits until every exchange is compared, stops the adapter so that it stores its counts, and returns the proposals. */
  const learned = async (settings: object = partner) => {
    const samples = await compared(adapter, batches)
    const differing = sumOf(samples, 'compare_records_total', 'differs')
    await adapter.app.close()
    const config = parseConfig({ upstreams, partners: [settings], journal })
    const store = await openRolloutStore({ url: journal.url, keys: [] })
    onTestFinished(() => store.close())
    const [own] = config.partners
    if (own === undefined) throw new Error('no partner')
    const counted = learnedOf(await store.evidence.read('acme'))
    const proposals = propose(counted, own)
    const text = [...counted.keys()].join()
    return { text, batches, differing, ...proposals, patch: toPatch(formatPatch('acme', proposals)) }
  }
  return { adapter, partner, post, learned }
}

/**
 * Returns the metric samples of an adapter once comparison has ended for every exchange. An empty queue does not prove this: an exchange
 * enters the queue only after its client has the reply, and leaves the queue when its comparison begins.
 */
async function compared(adapter: Adapter, batches: number): Promise<ReadonlyMap<string, number>> {
  return vi.waitFor(
    async () => {
      const samples = await readSamples(adapter)
      const [offered, ...ended] = ['offered', 'compared', 'skipped', 'dropped'].map((name) =>
        sumOf(samples, `compare_${name}_total`),
      )
      expect(sumOf(samples, 'compare_offered_total', 'check="reply"')).toBe(batches)
      expect(ended.reduce((sum, count) => sum + count, 0)).toBe(offered)
      expect(sumOf(samples, 'compare_waiting')).toBe(0)
      return samples
    },
    { timeout: 60_000, interval: 50 },
  )
}

function sumOf(samples: ReadonlyMap<string, number>, name: string, label = ''): number {
  return [...samples]
    .filter(([sample]) => sample.startsWith(`markbridge_${name}`) && sample.includes(label))
    .reduce((sum, [, value]) => sum + value, 0)
}

function toPatch(text: string): object {
  const { partners: [partner = {}] = [] } = (parse(text) ?? {}) as { partners?: object[] }
  return Object.fromEntries(Object.entries(partner).filter(([name]) => name !== 'id'))
}

/** Sends typical batches of a morning: registers, corrections, invalid records, and a batch whose ids in header and body differ. */
async function sendMorning(
  faces: ComparedFaces,
  post: Awaited<ReturnType<typeof startLearning>>['post'],
  event: number,
): Promise<void> {
  const { samples, mark } = faces
  const session = { AttendableEvent: samples.events[event] }
  const errors = [
    mark(4, { AttendableEvent: samples.learners[0] }),
    mark(5, { ...session, SchoolAttendanceCode: samples.learners[0] }),
  ]
  await post([mark(0, session), mark(1, { ...session, MinutesLate: 5 }), ...errors])
  await post([mark(1, session)])
  await post([mark(2, { ...session, Comment: 'Content-Type: multipart/mixed' })], {}, generic)
  await post([mark(3, { ...session, Present: false, Absent: true })], {}, { Accept: 'multipart/mixed' })
  await post([mark(6, session), flatRecord(1)], otherIds())
}

/** Error texts of the sandbox, which differ from the texts of the adapter. */
const texts = {
  ATT_VAL_2: 'The AttendableEvent of the record does not exist.',
  ATT_VAL_3: 'The SchoolAttendanceCode of the record does not exist.',
}
const owned = { ATT_VAL_2: 'Event does not exist.', ATT_VAL_3: 'Code does not exist.' }

describe('compare learn, from at most 20 batches of an adapter at shadow', () => {
  it.each<readonly [object, object]>([
    [{}, { errorMessages: texts }],
    [{ layout: 'auto' }, { layout: 'auto', errorMessages: texts }],
    [{ dataEnvelope: true }, { quirks: { dataEnvelope: true }, errorMessages: texts }],
    [{ layout: 'nested', dataEnvelope: true, msgtypeResponse: true, errorMessages: owned }, { layout: 'nested', quirks: { dataEnvelope: true, msgtypeResponse: true }, errorMessages: owned }],
  ])('proposes exactly the settings that fit a service with %j: %j', async (form, expected) => {
    const faces = await startFaces()
    await faces.put('legacy-form', form)
    const first = await startLearning(faces)
    await sendMorning(faces, first.post, 0)
    await sendMorning(faces, first.post, 1)
    const { patch, batches, text } = await first.learned()
    expect(patch).toEqual(expected)
    expect(batches).toBeLessThanOrEqual(MAX_BATCHES)
    expect(text).not.toMatch(/[0-9a-f]{8}-[0-9a-f]{4}/)

    const second = await startLearning(faces, patch)
    await sendMorning(faces, second.post, 2)
    expect(await second.learned()).toMatchObject({ patch: {}, differing: 0 })
  }) // prettier-ignore

  it('proposes the removal of wrong settings', async () => {
    const faces = await startFaces()
    const wrong = {
      layout: 'nested',
      quirks: { dataEnvelope: true, msgtypeResponse: true },
      errorMessages: owned,
    }
    const { post, learned } = await startLearning(faces, wrong)
    await sendMorning(faces, post, 0)
    expect((await learned()).patch).toEqual({
      layout: 'flat',
      quirks: { dataEnvelope: false, msgtypeResponse: false },
      errorMessages: texts,
    })
  })
})
