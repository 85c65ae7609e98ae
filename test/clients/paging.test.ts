import { OData } from '@odata/client'
import { expect, test } from 'vitest'

import { startService } from './support/start-service.ts'

type Rows = readonly Readonly<Record<string, unknown>>[]

interface Page {
  readonly value: Rows
  readonly '@odata.nextLink'?: string
}

test('@odata/client reads two weeks of a school page by page, and gets the same rows from the adapter as from V2', async () => {
  const service = await startService({}, { scale: 'school' })
  const { from, to } = service.samples
  const params = OData.newOptions().filter(
    `AttendableEventStart ge ${from} and AttendableEventStart lt ${to}`,
  )
  const readAll = async (serviceEndpoint: string): Promise<Rows[]> => {
    const client = OData.New4({ serviceEndpoint, commonHeaders: { ...service.headers } })
    const read = async (request: object): Promise<Page> =>
      (await client.newRequest({ method: 'GET', ...request })) as unknown as Page
    let page = await read({ collection: 'AttendanceRecords', params })
    const pages = [page.value]
    for (let link = page['@odata.nextLink']; link !== undefined; link = page['@odata.nextLink']) {
      expect(link.slice(0, serviceEndpoint.length)).toBe(serviceEndpoint)
      page = await read({ collection: link.slice(serviceEndpoint.length) })
      pages.push(page.value)
    }
    return pages
  }
  const pages = await readAll(service.root)
  expect(pages.map(({ length }) => length)).toEqual([...Array.from({ length: 10 }, () => 1_000), 80])
  expect(pages).toEqual(await readAll(`${service.sandbox.url}/V2/Attendance/`))
  // Each learner occurs once in each session, so no page repeats a row of another page.
  const ids = pages
    .flat()
    .map(({ Learner, AttendableEvent }) => `${String(Learner)} ${String(AttendableEvent)}`)
  expect(new Set(ids).size).toBe(10_080)
})
