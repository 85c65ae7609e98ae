import { describe, expect, it } from 'vitest'

import { sandboxHeaders } from '../sandbox/start-sandbox.ts'
import { batchOf, flatRecord, postBatch } from '../support/batch-request.ts'
import { type Answer, replyWith, startUpstream } from '../support/scripted-upstream.ts'
import { startFaces } from './support/compared-faces.ts'
import { startCompared } from './support/compared-partner.ts'

const quick = { compare: { settleMs: 200 } }
const path = '/x/V2/Attendance/AttendanceRecords'

describe('a read at shadow that V2 answers and V3 rejects', () => {
  const id = '00000000-0000-4000-8000-000000000001'
  const ofOne = `$filter=Learner%20eq%20${id}`

  it('is reported as a difference in the status', async () => {
    const queries = [
      '$apply=aggregate($count%20as%20n)',
      `$apply=groupby((Learner),aggregate(MinutesLate%20with%20sum%20as%20n))&${ofOne}`,
      `${ofOne}&$compute=MinutesLate%20mul%202%20as%20x`,
      `${ofOne}&$search=a`,
      `${ofOne}&$deltatoken=1`,
      '$filter=%zz',
    ]
    const v2 = await startUpstream(replyWith(200, { value: [{ Learner: id, n: 3 }] }))
    const { v3Url } = await startFaces()
    const { adapter, compared, settled } = await startCompared(v2.url, v3Url, quick)
    for (const query of queries) await adapter.request('GET', `${path}?${query}`, { headers: sandboxHeaders })
    await settled(queries.length)
    const difference = { path: 'reply/status', v2Class: 'status:200', v3Class: 'status:400' }
    expect(compared.flatMap(({ records }) => records)).toMatchObject(
      queries.map(() => ({ verdict: 'differs', differences: [difference] })),
    )
    expect(adapter.events().filter(({ msg }) => msg === 'internal error')).toEqual([])
  })
})

describe('a write at shadow', () => {
  it('is compared with the reply that the adapter builds from the marks on V3', async () => {
    const { v3Url, v2Url, mark, samples, faces } = await startFaces()
    const { adapter, compared, settled } = await startCompared(v2Url, v3Url, quick)
    const marks = [
      mark(0),
      mark(1, { MinutesLate: 5 }),
      mark(2, { Comment: 'bus' }),
      mark(3, { SchoolAttendanceCode: samples.events[0] }),
    ]
    expect((await postBatch(adapter, batchOf(marks), sandboxHeaders)).status).toBe(200)
    expect(await settled(1)).toEqual({
      'offered reply': 1,
      'compared reply': 1,
      'records reply batch equivalent': 3,
      'records reply batch unchecked': 1,
      'calls v3 2xx': 2,
    })
    const [reply] = compared
    expect(reply).toMatchObject({
      partner: 'acme',
      stage: 'shadow',
      served: 'v2',
      kind: 'batch',
      check: 'reply',
    })
    // V2 refused the last record. Only a POST would show whether V3 refuses it too, so its verdict is `unchecked`.
    expect(reply?.records.map(({ verdict, traits, codeClass }) => [verdict, traits, codeClass])).toEqual([
      ['equivalent', [], 'code:present'],
      ['equivalent', ['late'], 'code:present'],
      ['equivalent', ['comment'], 'code:present'],
      ['unchecked', [], 'code:present'],
    ])
    expect(reply?.delaysMs).toHaveLength(3)
    expect(await faces()).toEqual(['V2', 'V2', 'V2'])
  })

  it("is also compared with the adapter's reply if the write is a single record without a batch", async () => {
    const { v3Url, v2Url, mark } = await startFaces()
    const { adapter, compared, settled } = await startCompared(v2Url, v3Url, quick)
    const headers = { ...sandboxHeaders, 'Content-Type': 'application/json' }
    for (const [learner, prefer] of ['return=representation', 'return=minimal'].entries())
      await adapter.request('POST', path, {
        headers: { ...headers, Prefer: prefer },
        body: JSON.stringify(mark(learner)),
      })
    await settled(2)
    const found = compared.map(({ check, kind, records }) => [
      check,
      kind,
      ...records.flatMap(({ verdict, equivalences }) => [verdict, ...equivalences.map(({ rule }) => rule)]),
    ])
    expect(found.sort()).toEqual([
      ['reply', 'record', 'equivalent', 'context-address'],
      // A minimal reply has no body, so comparison uses the posted record, which lacks the members that V3 shows as null.
      ['reply', 'record', 'equivalent', 'missing-null'],
    ])
  })

  it("is reported with exactly one difference if one value in V2's reply was changed", async () => {
    const { v3Url, v2Url, mark } = await startFaces()
    const changes: [string, (text: string) => string, string[]][] = [
      ['a field', (text) => text.replace('"MinutesLate":3', '"MinutesLate":4'), ['MinutesLate value']],
      ['a status phrase', (text) => text.replace('201 Created', '201 OK'), ['part/reason value']],
      ['a Content-ID', (text) => text.replace('Content-ID: 1', 'Content-ID: 7'), ['part/Content-ID value']],
      ['a part header', (text) => text.replace('Content-Transfer-Encoding: binary\r\n', ''), ['part/Content-Transfer-Encoding extra']],
    ] // prettier-ignore
    for (const [name, change, expected] of changes) {
      const changing: Answer = async (seen, response) => {
        const headers = Object.fromEntries(
          Object.entries(seen.headers).filter(
            ([field]) => !['host', 'connection', 'content-length'].includes(field),
          ),
        ) as Record<string, string>
        const body = seen.method === 'GET' ? null : Buffer.from(seen.body, 'latin1')
        const reply = await fetch(`${v2Url}${seen.url}`, { method: seen.method, headers, body })
        const text = change(await reply.text())
        response
          .writeHead(reply.status, { 'Content-Type': reply.headers.get('content-type') ?? '' })
          .end(text)
      }
      const v2 = await startUpstream(changing)
      const { adapter, compared, settled } = await startCompared(v2.url, v3Url, quick)
      await postBatch(adapter, batchOf([mark(0, { MinutesLate: 3 })]), sandboxHeaders)
      await settled(1)
      const found = compared
        .filter(({ check }) => check === 'reply')
        .flatMap(({ records }) =>
          records.flatMap(({ differences }) => differences.map((own) => `${own.path} ${own.kind}`)),
        )
      expect([name, found]).toEqual([name, expected])
    }
  })

  it('is not compared, and its reply is not logged, if V2 sends an unreadable reply', async () => {
    const replies: Answer[] = [
      replyWith(200, 'secret-learner', { 'Content-Type': 'text/plain' }),
      replyWith(200, 'secret-learner', { 'Content-Type': 'multipart/mixed; boundary=a', 'Content-Encoding': 'gzip' }),
      replyWith(200, 'secret-learner', { 'Content-Type': 'multipart/mixed; boundary=a', 'Content-Encoding': 'zstd' }),
      replyWith(200, 'x'.repeat(9_000_000), { 'Content-Type': 'multipart/mixed; boundary=a' }),
      (_seen, response) => void response .writeHead(200, { 'Content-Type': 'multipart/mixed; boundary=a' }) .end(Buffer.from([0x2d, 0x2d, 0x61, 0xff, 0xfe, 0x0a, 0xc3, 0x28])),
    ] // prettier-ignore
    const v2 = await startUpstream((seen, response) => replies[seen.index]?.(seen, response))
    const { adapter, settled } = await startCompared(v2.url, v2.url, quick)
    for (const index of replies.keys()) await postBatch(adapter, batchOf([flatRecord(index)]))
    const skipped = (check: string) => ({
      [`offered ${check}`]: 5,
      [`skipped ${check} form`]: 2,
      [`skipped ${check} encoding`]: 2,
      [`skipped ${check} tooLarge`]: 1,
    })
    expect(await settled(5)).toEqual(skipped('reply'))
    expect(adapter.log.join()).not.toContain('secret-learner')
  })

  it('is not compared if V2 rejects the write', async () => {
    let isUp = false
    const v2 = await startUpstream((seen, response) =>
      replyWith(isUp ? 200 : 503, 'secret-learner', { 'Content-Type': 'text/plain' })(seen, response),
    )
    const { adapter, settled } = await startCompared(v2.url, v2.url, quick)
    for (const [index, next] of [true, false, false].entries()) {
      await postBatch(adapter, batchOf([flatRecord(index)]))
      isUp = next
    }
    expect(await settled(2)).toEqual({
      'offered reply': 2,
      'skipped reply form': 1,
      'skipped reply refused': 1,
    })
    expect(adapter.log.join()).not.toContain('secret-learner')
  })
})

describe('a read at shadow', () => {
  it('is compared row by row with the answer of the adapter', async () => {
    const { v3Url, v2Url, mark, samples } = await startFaces()
    const { adapter, settled, compared } = await startCompared(v2Url, v3Url, quick)
    await postBatch(adapter, batchOf([mark(0), mark(1)]), sandboxHeaders)
    await settled(1)
    const get = (text: string) => adapter.request('GET', `${path}${text}`, { headers: sandboxHeaders })
    const filter = `AttendableEvent eq ${samples.events[0] ?? ''}`
    const { text } = await get(`?$filter=${encodeURIComponent(filter)}`)
    const [row] = (JSON.parse(text) as { value: { ExternalID: string }[] }).value
    await get(`(${row?.ExternalID ?? ''})`)
    await get('(00000000-0000-4000-8000-000000000001)')
    await get(`?$top=1&$filter=${encodeURIComponent(filter)}`)
    await get(`/$count?$filter=${encodeURIComponent(filter)}`)
    await adapter.request('GET', '/x/V2/LearnerRegistations?expand=Enrolments', { headers: sandboxHeaders })
    const counts = await settled(7)
    expect(counts).toMatchObject({ 'skipped answers unordered': 1, 'skipped answers form': 1 })
    const answers = compared.filter(({ check, records }) => check === 'answers' && records.length > 0)
    const verdictsOf = (kind: string): string[] => {
      const records = answers.filter((own) => own.kind === kind).flatMap((own) => own.records)
      const words = records.map(({ verdict, differences, equivalences }) =>
        [verdict, ...differences.map(({ path: own }) => own), ...equivalences.map(({ rule }) => rule)].join(
          ' ',
        ),
      )
      return [...new Set(words)].sort()
    }
    expect(verdictsOf('readFilter')).toEqual(['equivalent history-left-out', 'same'])
    // `same` comes from the second read by key, whose mark exists on neither side.
    expect(verdictsOf('readKey')).toEqual(['equivalent history-left-out', 'same'])
    expect(verdictsOf('registrations')).toEqual(['equivalent expand-list-of-v3'])
  })
})

describe('live comparison', () => {
  it('receives no exchange at legacy, or if compare.percent is 0', async () => {
    const v2 = await startUpstream(replyWith(200, { value: [] }))
    for (const choices of [{ stage: 'legacy' }, { compare: { percent: 0 } }]) {
      const { adapter, counts } = await startCompared(v2.url, v2.url, choices)
      await postBatch(adapter, batchOf([flatRecord(1)]))
      await adapter.request('GET', path)
      expect(await counts()).toEqual({})
    }
  })
})
