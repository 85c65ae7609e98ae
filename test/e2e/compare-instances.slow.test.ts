import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'

import { openJournal } from '../../src/journal/index.ts'
import { sandboxHeaders } from '../sandbox/start-sandbox.ts'
import { batchOf, postBatch } from '../support/batch-request.ts'
import { type Answer, replyWith, startUpstream } from '../support/scripted-upstream.ts'
import { missingPostgres, startPostgres, type TestPostgres } from '../support/start-postgres.ts'
import { type ComparedFaces, startFaces } from './support/compared-faces.ts'
import { type ComparedPartner, startCompared } from './support/compared-partner.ts'

/** Describes each record that a check compared: the verdict, and the path and V3's value class of each difference. */
const foundBy = ({ compared }: ComparedPartner, check: string): string[] =>
  compared
    .filter((exchange) => exchange.check === check)
    .flatMap(({ records }) =>
      records.map(({ verdict, differences }) =>
        [verdict, ...differences.map(({ path, v3Class }) => `${path} ${v3Class}`)].join(' '),
      ),
    )

describe.skipIf(missingPostgres() !== undefined)('comparison by two instances on one PostgreSQL', () => {
  let postgres: TestPostgres
  beforeAll(async () => {
    postgres = await startPostgres()
  })
  afterAll(() => postgres.close())

  async function start(
    v2: string,
    v3: string,
    partner: object,
  ): Promise<readonly [ComparedPartner, ComparedPartner]> {
    const journal = { url: await postgres.createDatabase() }
    return [
      await startCompared(v2, v3, partner, { journal }),
      await startCompared(v2, v3, partner, { journal }),
    ]
  }
  const write = async ({ adapter }: ComparedPartner, ...marks: readonly object[]): Promise<void> => {
    expect((await postBatch(adapter, batchOf(marks), sandboxHeaders)).status).toBe(200)
  }
  const pairOf = ({ mark }: ComparedFaces, learner: number) =>
    [mark(learner, { Comment: 'bus' }), mark(learner, { Comment: 'train', MinutesLate: 7 })] as const

  const portOf = ({ v2Url, v3Url }: ComparedFaces, face: 'V2' | 'V3'): string =>
    face === 'V2' ? v2Url : v3Url
  /** Hides new marks from the reads of one interface: all later marks, or with `lagMs` the marks of the last `lagMs` milliseconds. */
  const lag = (faces: ComparedFaces, face: 'V2' | 'V3', lagMs?: number) =>
    fetch(`${portOf(faces, face)}/_sandbox/faults`, {
      method: 'PUT',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ kind: 'staleRead', lagMs }),
    })

  const sides = [
    ['shadow', 'reply', 'V3', { stage: 'shadow' }],
    ['v3', 'readBack', 'V2', { stage: 'v3', check: { v2: 100 } }],
  ] as const

  it.each(sides)(
    'reports, at stage %s, the verdict unknown for a mark that the other instance replaced with a newer mark',
    async (_stage, check, face, settings) => {
      const faces = await startFaces()
      // Hides the marks from the interface that comparison reads, until all marks are written.
      await lag(faces, face)
      const [one, other] = await start(faces.v2Url, faces.v3Url, {
        ...settings,
        compare: { settleMs: 3_000 },
      })
      const [first, second] = [pairOf(faces, 0), pairOf(faces, 1)]
      await write(one, first[0])
      await write(other, first[1])
      await write(other, second[0])
      await write(one, second[1])
      await fetch(`${portOf(faces, face)}/_sandbox/faults`, { method: 'DELETE' })
      await one.settled(2)
      await other.settled(2)
      for (const instance of [one, other])
        expect(foundBy(instance, check).sort()).toEqual([
          expect.stringMatching(/^(?:same|equivalent)$/),
          'unknown',
        ])
    },
  )

  it.each(sides)(
    'reports, at stage %s, each mark that the two interfaces show differently, even if the other instance corrected the mark',
    async (_stage, check, face, settings) => {
      const faces = await startFaces()
      const { learners, events } = faces.samples
      const kinds = ['recordedOn', 'id', 'code', 'commentCut', 'missing'] as const
      const rows = kinds.map((kind, at) => ({ learner: learners[at], event: events[0], kind }))
      await faces.put('differences', { face, rows })
      await lag(faces, face, 300)
      const [one, other] = await start(faces.v2Url, faces.v3Url, { ...settings, compare: { settleMs: 700 } })
      const pairs = kinds.map((_kind, at) => pairOf(faces, at))
      await write(one, ...pairs.map(([mark]) => mark))
      await write(other, ...pairs.map(([, correction]) => correction))
      await one.settled(1)
      await other.settled(1)
      const found = foundBy(other, check)
      expect(found).toHaveLength(kinds.length)
      for (const path of ['RecordedOn', 'ExternalID', 'SchoolAttendanceCode', 'Comment'])
        expect(found.filter((text) => text.startsWith(`differs ${path} `))).toHaveLength(1)
      expect(found.filter((text) => text.startsWith(face === 'V3' ? 'onlyV2' : 'onlyV3'))).toHaveLength(1)
      // The first instance wrote marks that are now overwritten, so none of its verdicts may be `same` or `equivalent`.
      expect(foundBy(one, check)).toHaveLength(kinds.length)
      expect(foundBy(one, check).filter((text) => !/^(?:differs|only|unknown)/.test(text))).toEqual([])
    },
  )

  it('reports a difference when V3 stores other values than its reply shows, even if both interfaces show the stored values', async () => {
    const faces = await startFaces()
    await faces.put('values', { echo: 'posted', clock: 'server', comments: [{ cut: 1 }] })
    const [one] = await start(faces.v2Url, faces.v3Url, { ...sides[1][3], compare: { settleMs: 200 } })
    await write(one, faces.mark(0, { Comment: 'bus' }), faces.mark(1))
    await one.settled(1)
    expect(foundBy(one, 'readBack').filter((text) => !text.startsWith('differs RecordedOn'))).toEqual([])
    expect(foundBy(one, 'readBack')).toHaveLength(2)
  })

  it('sends no reads to V2 after V2 answered 429 to a client of another instance', async () => {
    const { v3Url, mark } = await startFaces()
    const v2 = await startUpstream(replyWith(429, '', { 'Retry-After': '1' }))
    const url = await postgres.createDatabase()
    const settings = {
      check: { v2: 100 },
      compare: { settleMs: 50 },
      canary: { header: 'x-school', always: ['one'], percent: 0 },
    }
    const start = () => startCompared(v2.url, v3Url, { stage: 'canary', ...settings }, { journal: { url } })
    const [one, other] = [await start(), await start()]
    const post = async ({ adapter }: ComparedPartner, school: string): Promise<number> => {
      const batch = batchOf([mark(school === 'one' ? 0 : 1)])
      const headers = { ...batch.headers, ...sandboxHeaders, 'x-school': school }
      return (await postBatch(adapter, { ...batch, headers })).status
    }
    expect(await post(one, 'two')).toBe(429)
    const journal = await openJournal({ url })
    onTestFinished(() => journal.close())
    await vi.waitFor(
      async () => expect(await journal.rateLimit.sincePauseMs('comparison acme v2')).toBeLessThan(Infinity),
      60_000,
    )
    expect(await post(other, 'one')).toBe(200)
    expect(await other.settled(1)).toMatchObject({ 'skipped readBack silence': 1 })
    expect(v2.seen.filter(({ method }) => method === 'GET')).toEqual([])
  })

  it('sends no reads to V3 after V3 answered 429 to a comparison of another instance', async () => {
    const { v2Url, mark } = await startFaces()
    const v3 = await startUpstream(replyWith(429, '', { 'Retry-After': '1' }) satisfies Answer)
    const [one, other] = await start(v2Url, v3.url, { compare: { settleMs: 50 }, v3: { callsPerSecond: 50 } })
    await write(one, mark(0))
    await one.settled(1)
    await write(other, mark(1))
    expect(await other.settled(1)).toMatchObject({ 'skipped reply silence': 1 })
    expect(v3.seen).toHaveLength(1)
  })
})
