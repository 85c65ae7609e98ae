import { describe, expect, it } from 'vitest'

import {
  batchOf,
  batchText,
  created,
  flatRecord,
  flatRecords,
  outcomesOf,
  postBatch,
  statusesOf,
} from '../support/batch-request.ts'
import { RawClient } from '../support/raw-client.ts'
import {
  echoRecord,
  holdAnswers,
  postsOf,
  type SeenRequest,
  startUpstream,
  type Upstream,
} from '../support/scripted-upstream.ts'
import { type Adapter, startAdapter, startWithV3 } from '../support/start-adapter.ts'
import { journalFile } from './support/journal-file.ts'

const mark = (minutes: number) => batchOf([flatRecord(1, { MinutesLate: minutes })])
const minutesOf = (seen: readonly SeenRequest[]): (string | undefined)[] =>
  postsOf(seen).map(({ body }) => /"MinutesLate":(\d)/.exec(body)?.[1])

async function postAndLeave(
  adapter: Adapter,
  upstream: Upstream,
  batch: ReturnType<typeof mark>,
  release: () => void,
): Promise<void> {
  const client = await RawClient.open(adapter.port, batchText(batch))
  await upstream.arrived(1)
  client.socket.destroy()
  release()
  await expect
    .poll(async () => (await adapter.request('GET', '/metrics')).text)
    .toMatch(/journal_records\{[^}]*state="confirmed"[^}]*\} 1\n/)
}

describe('the adapter, when it recognises a batch by its ids and its bytes', () => {
  it('treats the same bytes as a resend even if Content-Type is written differently', async () => {
    const { upstream, adapter } = await startWithV3(echoRecord, { journal: journalFile() })
    const { headers, body } = batchOf(flatRecords(3), { batch: 'b1', boundary: 'b1' })
    const spellings = [
      headers['Content-Type'] ?? '',
      'multipart/mixed; boundary="b1"',
      'Multipart/Mixed;BOUNDARY=b1',
      'multipart/mixed; charset=utf-8; boundary=b1',
      'multipart/mixed; boundary=b1 ; type="application/http"',
    ]
    const replies = []
    for (const spelling of spellings)
      replies.push(await postBatch(adapter, { headers: { 'Content-Type': spelling }, body }))
    expect(upstream.seen.length).toBe(3)
    expect(new Set(replies.map(({ text }) => text)).size).toBe(1)
  })

  it('treats the same bytes with another boundary as another batch', async () => {
    const { upstream, adapter } = await startWithV3(echoRecord, { journal: journalFile() })
    const { body } = batchOf(flatRecords(1), { batch: 'b1' })
    for (const boundary of ['b1', 'B1'])
      await postBatch(adapter, { headers: { 'Content-Type': `multipart/mixed; boundary=${boundary}` }, body })
    expect(upstream.seen.length).toBe(2)
  })

  it('still returns the stored reply after another client has used the same ids for other bytes', async () => {
    const { upstream, adapter } = await startWithV3(echoRecord, { journal: journalFile() })
    const other = { 'Ocp-Apim-Subscription-Key': 'key of another client' }
    const first = await postBatch(adapter, mark(1))
    expect(outcomesOf(await postBatch(adapter, mark(2), other))).toEqual(created(1))
    expect((await postBatch(adapter, mark(1))).text).toBe(first.text)
    expect(minutesOf(upstream.seen)).toEqual(['1', '2'])
  })

  it('recognises the batch if the client used the ids for another body before the first reply', async () => {
    const { answer, release } = holdAnswers()
    const journal = journalFile()
    const { upstream, adapter } = await startWithV3(answer, { journal })
    await postAndLeave(adapter, upstream, mark(1), release)
    const second = await postBatch(adapter, mark(2))
    const other = await startAdapter(upstream.url, { journal })
    for (const each of [adapter, other])
      expect(outcomesOf(await postBatch(each, mark(1)))).toEqual(created(1))
    expect(statusesOf(second)).toEqual([201])
    expect(minutesOf(upstream.seen)).toEqual(['1', '2'])
  })

  it('treats a batch as new, on any instance, if the client has reused the ids since it got the reply', async () => {
    const upstream = await startUpstream()
    const journal = journalFile()
    const first = await startAdapter(upstream.url, { journal })
    for (const minutes of [1, 2, 1, 1]) await postBatch(first, mark(minutes))
    expect(minutesOf(upstream.seen)).toEqual(['1', '2', '1'])
    await first.app.close()
    const next = await startAdapter(upstream.url, { journal })
    for (const minutes of [2, 1]) await postBatch(next, mark(minutes))
    expect(minutesOf(upstream.seen)).toEqual(['1', '2', '1', '2', '1'])
    expect(next.events().filter(({ msg }) => msg === 'batch ids reused').length).toBe(2)
  })
})
