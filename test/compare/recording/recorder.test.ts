import { mkdir, readdir, rename, stat, utimes } from 'node:fs/promises'
import { join } from 'node:path'

import { expect, it } from 'vitest'

import type { RecordedExchange } from '../../../src/compare/recording/exchange.ts'
import { createPseudonyms } from '../../../src/compare/recording/pseudonyms.ts'
import { listRecordings, readRecording } from '../../../src/compare/recording/recording-files.ts'
import {
  createRecordingTarget,
  openRecordingStore,
  type RecordFate,
  type RecordingStore,
} from '../../../src/compare/recording/recording-store.ts'
import { makeFolder as makeParent } from '../../journal/open-sqlite.ts'
import { textBelow } from '../../support/text-below.ts'
import { credentials, markedBody, markedExchange, markers } from './exchanges.ts'

const key = Buffer.alloc(32, 9)
const pseudonyms = createPseudonyms(Buffer.alloc(32, 4))
const DAY_MS = 86_400_000

const makeFolder = async (): Promise<string> => join(await makeParent(), 'kept')

const open = (folder: string, given: Partial<Parameters<typeof openRecordingStore>[0]> = {}) =>
  openRecordingStore({
    folder,
    key: undefined,
    maxBytes: 10_000_000,
    nowMs: Date.now,
    ...given,
  })

function targetOn(store: RecordingStore, form?: typeof pseudonyms) {
  const failures: unknown[] = []
  const target = createRecordingTarget({
    open: () => Promise.resolve(store),
    pseudonyms: form,
    onStopped: (cause) => failures.push(cause),
  })
  return { keep: (exchange: RecordedExchange) => target.keep(exchange), failures }
}

async function record(folder: string, form: 'sealed' | 'pseudonyms', exchanges: readonly RecordedExchange[]) {
  const store = await open(folder, form === 'sealed' ? { key } : {})
  const { keep } = targetOn(store, form === 'sealed' ? undefined : pseudonyms)
  const fates: RecordFate[] = []
  for (const exchange of exchanges) fates.push(await keep(exchange))
  return fates
}

const shownIn = (text: string, sought: readonly string[]): readonly string[] =>
  sought.filter((marker) => text.toLowerCase().includes(marker.toLowerCase()))

it('shows no value and no credential on the disk, in either form', async () => {
  const broken = markedExchange({ body: markedBody(700) })
  for (const form of ['sealed', 'pseudonyms'] as const) {
    const folder = await makeFolder()
    // What cannot be decoded has no pseudonyms: it is not kept.
    expect(await record(folder, form, [markedExchange(), broken])).toEqual([
      'recorded',
      form === 'sealed' ? 'recorded' : 'unfit',
    ])
    expect(shownIn(await textBelow(folder), Object.values(markers))).toEqual([])
  }
})

it('shows the day alone of when pseudonyms were recorded', async () => {
  const folder = await makeFolder()
  await record(folder, 'pseudonyms', [markedExchange()])
  const names = await readdir(folder, { recursive: true })
  expect(names.length).toBe(4)
  for (const name of names) expect((await stat(join(folder, name))).mtimeMs % DAY_MS).toBe(0)
})

it('keeps no credential inside what is encrypted, and everything else as it came', async () => {
  const folder = await makeFolder()
  await record(folder, 'sealed', [markedExchange(), markedExchange({ body: markedBody(700) })])
  const found = await Promise.all((await listRecordings(folder)).map((one) => readRecording(one, key)))
  for (const { exchange } of found) {
    const all = [exchange.target, exchange.request.body.toString(), exchange.reply.body.toString(), exchange.reply.fields.join()] // prettier-ignore
    expect(shownIn(all.join(), credentials)).toEqual([])
    expect(shownIn(all.join(), [markers.learner, markers.preamble])).toHaveLength(2)
  }
  expect(found.map(({ exchange }) => exchange.request.body.length)).toEqual([markedBody().length, 700])
  expect(found[0]).toMatchObject({
    pseudonyms: false,
    exchange: { kind: 'batch', method: 'POST', durationMs: 12 },
  })
})

it.each(['sealed', 'pseudonyms'] as const)(
  'keeps the OData versions that a client names, %s',
  async (form) => {
    const folder = await makeFolder()
    const versions = ['OData-Version', '4.0', 'OData-MaxVersion', '4.01']
    await record(folder, form, [markedExchange({ fields: versions })])
    const [one = ''] = await listRecordings(folder)
    const { exchange } = await readRecording(one, form === 'sealed' ? key : undefined)
    expect(exchange.request.fields.slice(2)).toEqual(versions)
  },
)

it('gives request and reply the same pseudonyms, so that the case stays the case', async () => {
  const folder = await makeFolder()
  await record(folder, 'pseudonyms', [markedExchange()])
  const [one = ''] = await listRecordings(folder)
  const { exchange } = await readRecording(one, undefined)
  const valueIn = (text: string, name: string): string =>
    new RegExp(`"${name}":"([^"]*)"`).exec(text)?.[1] ?? 'none'
  const [sent, got] = [exchange.request.body.toString(), exchange.reply.body.toString()]
  expect(valueIn(sent, 'Learner')).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4/)
  expect(valueIn(got, 'Learner')).toBe(valueIn(sent, 'Learner'))
  expect(JSON.parse(`"${valueIn(sent, 'Comment')}"`) as string).toBe(valueIn(got, 'Comment'))
  expect(/Content-ID: (\S+)/.exec(got)?.[1]).toBe(/Content-ID: (\S+)/.exec(sent)?.[1])
  expect(sent).toContain('"MinutesLate":5,')
  // Dates move by whole weeks: the day of the week stays.
  const day = new Date(valueIn(got, 'RecordedOn'))
  expect([day.getUTCDay(), valueIn(got, 'RecordedOn').slice(10)]).toEqual([1, 'T08:40:01Z'])
  expect(day.getTime()).toBeLessThan(Date.UTC(2026, 8, 1))
})

it('opens with the key alone, and refuses another one and files that were changed or moved', async () => {
  const folder = await makeFolder()
  await record(folder, 'sealed', [markedExchange(), markedExchange()])
  const [one = '', other = ''] = await listRecordings(folder)
  await expect(readRecording(one, Buffer.alloc(32, 1))).rejects.toMatchObject({
    code: 'ADP_CONFIGURATION',
    message: expect.stringMatching(/is encrypted with another key/) as unknown,
  })
  await expect(readRecording(one, undefined)).rejects.toMatchObject({
    message: expect.stringMatching(/is encrypted\. Name its key with --key/) as unknown,
  })
  await rename(join(one, 'request.http.sealed'), join(other, 'request.http.sealed'))
  await expect(readRecording(other, key)).rejects.toMatchObject({
    code: 'ADP_USAGE',
    message: expect.stringMatching(/changed, cut or moved/) as unknown,
  })
  await expect(readRecording(one, key)).rejects.toMatchObject({ message: expect.stringMatching(/has no request/) as unknown }) // prettier-ignore
})

it('is readable for its owner alone, whole or not there, and has no id in its names', async () => {
  const folder = await makeFolder()
  const draft = join(folder, '.draft-07')
  await mkdir(draft, { recursive: true })
  await utimes(draft, new Date(0), new Date(0))
  await record(folder, 'pseudonyms', [markedExchange()])
  const [name = '', ...others] = await readdir(folder)
  expect([name.slice(0, 7), /^\d{6}-\d{8}T084000Z$/.test(name), others]).toEqual(['000001-', true, []])
  const modes = await Promise.all(
    [join(folder, name), ...(await readdir(join(folder, name))).map((file) => join(folder, name, file))].map(
      async (path) => ((await stat(path)).mode & 0o777).toString(8),
    ),
  )
  expect(modes).toEqual(['700', '600', '600', '600'])
})

it('removes the oldest first: what is over its age, and what has no room', async () => {
  const folder = await makeFolder()
  let nowMs = Date.now()
  const files = new Map([['recording.json', Buffer.alloc(3_000)]])
  const store = await open(folder, { maxBytes: 5 * 4_096, nowMs: () => nowMs })
  for (let n = 0; n < 8; n += 1) expect(await store.add(files, nowMs)).toBe('kept')
  const counters = async () => (await readdir(folder)).map((name) => Number.parseInt(name, 10)).sort()
  expect(await counters()).toEqual([4, 5, 6, 7, 8])
  expect(await store.add(new Map([['request.http', Buffer.alloc(30_000)]]), nowMs)).toBe('tooLarge')
  expect(await counters()).toEqual([4, 5, 6, 7, 8])
  nowMs += 31 * DAY_MS
  await store.add(files, nowMs)
  expect(await counters()).toEqual([9])
  // What an earlier process left counts as well.
  await utimes(join(folder, (await readdir(folder))[0] ?? ''), new Date(0), new Date(0))
  await open(folder)
  expect(await counters()).toEqual([])
})

it('stops with one message when the disk is full, and goes on taking nothing', async () => {
  const full = Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' })
  const store: RecordingStore = { add: () => Promise.reject(full), removeOld: () => Promise.resolve() }
  const { keep, failures } = targetOn(store)
  for (let n = 0; n < 3; n += 1) expect(await keep(markedExchange())).toBe('stopped')
  expect(failures).toEqual([full])
})

it('leaves no half of a recording where a write fails', async () => {
  const folder = await makeFolder()
  const store = await open(folder)
  const broken = new Map([['request.http', Buffer.alloc(10)], ['no/such/folder', Buffer.alloc(10)]]) // prettier-ignore
  await expect(store.add(broken, 0)).rejects.toMatchObject({ code: 'ENOENT' })
  expect(await readdir(folder)).toEqual([])
})

it('is one folder for several processes: no name twice, nothing of another removed, one bound', async () => {
  const folder = await makeFolder()
  const draft = join(folder, '.draft-of-another')
  await mkdir(draft, { recursive: true })
  const bounds = { maxBytes: 40 * 4_096, key }
  const stores = await Promise.all([1, 2, 3, 4].map(() => open(folder, bounds)))
  expect(await readdir(folder)).toEqual(['.draft-of-another'])
  const files = new Map([['recording.json', Buffer.alloc(300)]])
  const receivedMs = Date.UTC(2026, 8, 7, 8, 40)
  const add = () => Promise.all(stores.map((store) => store.add(files, receivedMs)))
  for (let round = 0; round < 5; round += 1) expect(await add()).toEqual(['kept', 'kept', 'kept', 'kept'])
  const names = (await readdir(folder)).filter((name) => !name.startsWith('.')).sort()
  const counters = names.map((name) => Number.parseInt(name, 10))
  expect([names.length, counters]).toEqual([20, Array.from({ length: 20 }, (_, at) => at + 1)])
  for (let round = 0; round < 10; round += 1) await add()
  // Each knows what the others have written, but for what they write at this moment.
  for (const store of stores) await store.add(files, receivedMs)
  const kept = (await readdir(folder)).filter((name) => !name.startsWith('.')).sort()
  expect([kept.length, Number.parseInt(kept[0] ?? '', 10)]).toEqual([40, 25])
})
