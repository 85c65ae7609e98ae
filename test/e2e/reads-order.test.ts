import { describe, expect, it } from 'vitest'

import { replyWith, startUpstream } from '../support/scripted-upstream.ts'
import { journalFile } from './support/journal-file.ts'
import { type Adapter, startAdapter } from '../support/start-adapter.ts'

const RECORDS = '/V2/Attendance/AttendanceRecords'
const MARKS = 47
const V3_PAGE = 20

const guidOf = (group: number, index: number): string =>
  `${group.toString(16).padStart(8, '0')}-0000-4000-8000-${index.toString(16).padStart(12, '0')}`
const idOf = (index: number): string => guidOf(1, index)

/** Every fourth row is a session without a mark. */
const rows = Array.from({ length: MARKS }, (_, index) => [
  rowOf(idOf(index), true),
  ...(index % 3 === 0 ? [rowOf(guidOf(2, index), false)] : []),
]).flat()

function rowOf(id: string, marked: boolean): object {
  return {
    ExternalID: id,
    RecordedBy: marked ? { ExternalID: guidOf(3, 0) } : null,
    Attendee: { ExternalID: guidOf(4, 0) },
    Event: { ExternalID: id },
    AttendanceCode: { ExternalID: guidOf(5, 0) },
  }
}

/** Starts a V3 service with pages of 20 rows. Each read returns the rows of a page in another order. */
async function startUnsteady(list: () => readonly object[]): Promise<string> {
  const upstream = await startUpstream((seen, response) => {
    const from = Number(/skiptoken=(\d+)/.exec(seen.url)?.[1] ?? 0)
    const page = list().slice(from, from + V3_PAGE)
    const next = from + V3_PAGE < list().length ? from + V3_PAGE : undefined
    const link = next === undefined ? {} : { '@odata.nextLink': `http://v3.test/x?$skiptoken=${next}` }
    void replyWith(200, { value: mix(page, seen.index), ...link })(seen, response)
  })
  return upstream.url
}

/** Returns the items in an order that depends on `times`. */
function mix<Item>(items: readonly Item[], times: number): Item[] {
  const step = [1, 3, 7, 11, 13][times % 5] ?? 1
  return items
    .map((item, index) => ({ item, place: (index * step + 5 * times) % 23 }))
    .sort((one, other) => one.place - other.place)
    .map(({ item }) => item)
}

/** Reads all pages, each through the next of the adapters in turn, and returns the ids. */
async function readAll(adapters: readonly Adapter[], query: string, size: number): Promise<string[]> {
  const ids: string[] = []
  let path: string | undefined = `${RECORDS}?$filter=true${query}`
  for (let page = 0; path !== undefined; page += 1) {
    const adapter = adapters[page % adapters.length] ?? adapters[0]
    const reply = await adapter?.request('GET', path, { headers: { Prefer: `odata.maxpagesize=${size}` } })
    expect([reply?.status, path.length < 2_000]).toEqual([200, true])
    const body = JSON.parse(reply?.text ?? '') as {
      value: { ExternalID: string }[]
      '@odata.nextLink'?: string
    }
    expect(body.value.length).toBeGreaterThan(0)
    ids.push(...body.value.map(({ ExternalID }) => ExternalID))
    const link = body['@odata.nextLink']
    path = link === undefined ? undefined : new URL(link).pathname + new URL(link).search
  }
  return ids
}

const all = Array.from({ length: MARKS }, (_, index) => idOf(index))

describe('a paged read of a V3 that orders its rows differently at each read', () => {
  it.each([1, 3, 7, 19, 20, 46])('returns every mark once, with %i marks a page', async (size) => {
    const url = await startUnsteady(() => rows)
    const settings = { journal: journalFile() }
    const adapters = [await startAdapter(url, settings), await startAdapter(url, settings)]
    expect((await readAll(adapters, '', size)).toSorted()).toEqual(all)
  })

  it('returns as many marks as $top and $skip request, without duplicates', async () => {
    const adapter = await startAdapter(await startUnsteady(() => rows))
    const ids = await readAll([adapter], '&$skip=5&$top=40&$count=true', 6)
    expect([ids.length, new Set(ids).size]).toEqual([40, 40])
    const rest = await readAll([adapter], '&$skip=11', 1_000)
    expect([rest.length, new Set(rest).size]).toEqual([MARKS - 11, MARKS - 11])
  })

  it('returns each surviving row exactly once while other rows are added, removed and changed', async () => {
    let time = 0
    const changing = (): object[] => {
      time += 1
      const page = rows.slice(0, V3_PAGE).filter((_, index) => index !== 9 || time < 3)
      return [rowOf(guidOf(6, time), true), ...page]
    }
    const adapter = await startAdapter(await startUnsteady(() => changing().slice(0, V3_PAGE)))
    const ids = await readAll([adapter], '', 4)
    const stays = all.filter((id) =>
      changing().some((row) => JSON.stringify(row).includes(`"ExternalID":"${id}"`)),
    )
    expect(ids.length).toBe(new Set(ids).size)
    expect(stays.slice(0, -1).filter((id) => !ids.includes(id))).toEqual([])
  })
})
