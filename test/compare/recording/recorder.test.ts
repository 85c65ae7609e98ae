import { mkdir, readdir, rename, stat, utimes } from 'node:fs/promises'
import { join } from 'node:path'

import { expect, it } from 'vitest'

import { listRecordings, readRecording } from '../../../src/compare/recording/recording-files.ts'
import {
  createRecorder,
  openRecordingStore,
  type RecordingStore,
} from '../../../src/compare/recording/recording-store.ts'
import type { WireExchange } from '../../../src/compare/wire-exchange.ts'
import { makeFolder as makeParent } from '../../journal/open-sqlite.ts'
import { textBelow } from '../../support/text-below.ts'
import { credentials, markedBody, markedExchange, markers } from './exchanges.ts'

const key = Buffer.alloc(32, 9)
const DAY_MS = 86_400_000
const none = { recorded: 0, dropped: 0, tooLarge: 0, stopped: 0 }

const makeFolder = async (): Promise<string> => join(await makeParent(), 'kept')

const open = (folder: string, given: Partial<Parameters<typeof openRecordingStore>[0]> = {}) =>
  openRecordingStore({ folder, key, maxBytes: 10_000_000, nowMs: Date.now, ...given })

/** Records exchanges and returns the number of exchanges by result, and the errors that stopped the recording. */
async function record(store: Pick<RecordingStore, 'add'>, exchanges: readonly WireExchange[]) {
  const failures: unknown[] = []
  const { offer, end } = createRecorder(store, (cause) => failures.push(cause))
  exchanges.forEach(offer)
  return { ...(await end()), failures }
}

const shownIn = (text: string, sought: readonly string[]): readonly string[] =>
  sought.filter((marker) => text.toLowerCase().includes(marker.toLowerCase()))

it('the recorder writes no value and no credential to the disk unencrypted', async () => {
  const folder = await makeFolder()
  await record(await open(folder), [markedExchange(), markedExchange({ body: markedBody(700) })])
  expect(await readdir(folder)).toHaveLength(2)
  expect(shownIn(await textBelow(folder), Object.values(markers))).toEqual([])
})

it('the recorder removes credentials before encryption, and leaves everything else unchanged', async () => {
  const folder = await makeFolder()
  await record(await open(folder), [markedExchange(), markedExchange({ body: markedBody(700) })])
  const found = await Promise.all((await listRecordings(folder)).map((one) => readRecording(one, key)))
  for (const { target, request, reply } of found) {
    const all = [target, request.body.toString(), reply.body.toString(), reply.fields.join()].join()
    expect(shownIn(all, credentials)).toEqual([])
    expect(shownIn(all, [markers.learner, markers.preamble])).toHaveLength(2)
  }
  expect(found.map(({ request }) => request.body.length)).toEqual([markedBody().length, 700])
  expect(found[0]).toMatchObject({ kind: 'batch', receivedMs: Date.UTC(2026, 8, 7, 8, 40), durationMs: 12 })
})

it('the recorder keeps the OData version fields of a request', async () => {
  const folder = await makeFolder()
  const versions = ['OData-Version', '4.0', 'OData-MaxVersion', '4.01']
  await record(await open(folder), [markedExchange({ fields: versions })])
  const [one = ''] = await listRecordings(folder)
  const { request } = await readRecording(one, key)
  expect(request.fields.slice(2)).toEqual(versions)
})

it('readRecording opens recordings only with their key, and refuses files that were moved to another recording', async () => {
  const folder = await makeFolder()
  await record(await open(folder), [markedExchange(), markedExchange()])
  const [one = '', other = ''] = await listRecordings(folder)
  const rejects = async (folderOf: string, own: Buffer, code: string, message: RegExp): Promise<void> =>
    expect(readRecording(folderOf, own)).rejects.toMatchObject({
      code,
      message: expect.stringMatching(message) as unknown,
    })
  await rejects(one, Buffer.alloc(32, 1), 'ADP_CONFIGURATION', /is encrypted with another key/)
  await rename(join(one, 'request.http.sealed'), join(other, 'request.http.sealed'))
  await rejects(other, key, 'ADP_USAGE', /moved/)
  await rejects(one, key, 'ADP_USAGE', /request\.http\.sealed cannot be read/)
})

it('the recorder creates folders that only their owner can read, and whose names contain no ids', async () => {
  const folder = await makeFolder()
  const draft = join(folder, '.draft-07')
  await mkdir(draft, { recursive: true })
  await utimes(draft, new Date(0), new Date(0))
  await record(await open(folder), [markedExchange()])
  const [name = '', ...others] = await readdir(folder)
  expect([name.slice(0, 7), /^\d{6}-\d{8}T084000Z$/.test(name), others]).toEqual(['000001-', true, []])
  const modes = await Promise.all(
    [join(folder, name), ...(await readdir(join(folder, name))).map((file) => join(folder, name, file))].map(
      async (path) => ((await stat(path)).mode & 0o777).toString(8),
    ),
  )
  expect(modes).toEqual(['700', '600', '600', '600'])
})

it('the recorder skips exchanges above 4 MiB and exchanges whose body cannot be read', async () => {
  const folder = await makeFolder()
  const { reply } = markedExchange()
  const encoded = [...reply.fields, 'Content-Encoding', 'zstd']
  const exchanges = [
    markedExchange({ reply: { ...reply, body: Buffer.alloc(4_194_304 - markedBody().length) } }),
    markedExchange({ reply: { ...reply, body: Buffer.alloc(4_194_305 - markedBody().length) } }),
    { ...markedExchange(), request: { fields: [], body: undefined } },
    markedExchange({ reply: { ...reply, fields: encoded } }),
  ]
  expect(await record(await open(folder), exchanges)).toMatchObject({ recorded: 1, tooLarge: 3 })
})

it('the recorder drops an exchange if its queue is full', async () => {
  const writing = Promise.withResolvers<'recorded'>()
  const { offer, end } = createRecorder({ add: () => writing.promise }, () => undefined)
  for (let n = 0; n < 300; n += 1) offer(markedExchange())
  writing.resolve('recorded')
  expect(await end()).toEqual({ ...none, recorded: 256, dropped: 44 })
  const { reply } = markedExchange()
  for (let n = 0; n < 20; n += 1)
    offer(markedExchange({ reply: { ...reply, body: Buffer.alloc(2_000_000) } }))
  expect(await end()).toEqual({ ...none, recorded: 272, dropped: 48 })
})

it('the store of recordings deletes expired recordings, and the oldest recordings if all exceed the size limit', async () => {
  const folder = await makeFolder()
  let nowMs = Date.now()
  const files = new Map([['recording.json', Buffer.alloc(3_000)]])
  const store = await open(folder, { maxBytes: 5 * 4_096, nowMs: () => nowMs })
  for (let n = 0; n < 8; n += 1) expect(await store.add(files, nowMs)).toBe('recorded')
  const counters = async () => (await readdir(folder)).map((name) => Number.parseInt(name, 10)).sort()
  expect(await counters()).toEqual([4, 5, 6, 7, 8])
  expect(await store.add(new Map([['request.http', Buffer.alloc(30_000)]]), nowMs)).toBe('tooLarge')
  expect(await counters()).toEqual([4, 5, 6, 7, 8])
  nowMs += 31 * DAY_MS
  await store.add(files, nowMs)
  expect(await counters()).toEqual([9])
  // A new process also deletes the expired recordings of an earlier process.
  await utimes(join(folder, (await readdir(folder))[0] ?? ''), new Date(0), new Date(0))
  await open(folder)
  expect(await counters()).toEqual([])
})

it('the recorder reports a full disk once, and records nothing afterwards', async () => {
  const full = Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' })
  const store = { add: () => Promise.reject(full) }
  const exchanges = [markedExchange(), markedExchange(), markedExchange()]
  expect(await record(store, exchanges)).toEqual({ ...none, stopped: 3, failures: [full] })
})

it('the store of recordings leaves no partial recording after a failed write', async () => {
  const folder = await makeFolder()
  const store = await open(folder)
  const broken = new Map([['request.http', Buffer.alloc(10)], ['no/such/folder', Buffer.alloc(10)]]) // prettier-ignore
  await expect(store.add(broken, 0)).rejects.toMatchObject({ code: 'ENOENT' })
  expect(await readdir(folder)).toEqual([])
})

it('the store of recordings assigns unique names and keeps unfinished files of other commands if commands share a folder', async () => {
  const folder = await makeFolder()
  await mkdir(join(folder, '.draft-of-another'), { recursive: true })
  const stores = await Promise.all([open(folder), open(folder)])
  const files = new Map([['recording.json', Buffer.alloc(300)]])
  const receivedMs = Date.UTC(2026, 8, 7, 8, 40)
  for (let round = 0; round < 5; round += 1)
    await Promise.all(stores.map((store) => store.add(files, receivedMs)))
  const [draft, ...names] = (await readdir(folder)).sort()
  const counters = names.map((name) => Number.parseInt(name, 10))
  expect([draft, counters]).toEqual(['.draft-of-another', [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]])
})
