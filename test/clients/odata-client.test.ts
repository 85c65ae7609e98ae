import { OData } from '@odata/client'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { createSandbox, type Sandbox } from '../../src/sandbox/index.ts'

interface Identifier {
  readonly ExternalID: string
  readonly Surname: string
  readonly OnRollState: string
}
interface Personal {
  readonly ExternalID: string
  readonly QuickNote: string | null
}
interface Registration {
  readonly ExternalID: string
  readonly Enrolments?: readonly { readonly EnrolmentStatuses?: readonly unknown[] }[]
}
interface Page<Row> {
  readonly value: readonly Row[]
  readonly '@odata.count'?: number
}

const commonHeaders = { 'Ocp-Apim-Subscription-Key': 'sandbox', Authorization: 'bearer sandbox' }
let sandbox: Sandbox
let client: ReturnType<typeof OData.New4>

beforeAll(async () => {
  sandbox = createSandbox()
  const { url } = await sandbox.listen()
  client = OData.New4({ serviceEndpoint: `${url}/V3/`, commonHeaders })
})
afterAll(() => sandbox.close())

test('@odata/client reads current learners in order, page by page and with a count', async () => {
  const params = OData.newOptions()
    .filter(OData.newFilter().property('OnRollState').eq('Current'))
    .orderby('Surname', 'asc')
    .count(true)
    .skip(5)
    .top(10)
  const page = (await client.newRequest({
    collection: 'LearnerIdentifiers',
    params,
  })) as unknown as Page<Identifier>
  const surnames = page.value.map(({ Surname }) => Surname)
  expect(page['@odata.count']).toBe(30)
  expect(surnames).toHaveLength(10)
  expect(surnames).toEqual([...surnames].sort())
  expect(new Set(page.value.map(({ OnRollState }) => OnRollState))).toEqual(new Set(['Current']))
})

test('@odata/client selects fields and expands two levels', async () => {
  const params = OData.newOptions()
    .select(['ExternalID'])
    .expand(['Enrolments($expand=EnrolmentStatuses)'])
    .top(1)
  const page = (await client.newRequest({
    collection: 'LearnerRegistrations',
    params,
  })) as unknown as Page<Registration>
  const [registration] = page.value
  expect(
    Object.keys(registration ?? {})
      .filter((name) => !name.startsWith('@'))
      .sort(),
  ).toEqual(['Enrolments', 'ExternalID'])
  expect(registration?.Enrolments?.[0]?.EnrolmentStatuses?.length).toBeGreaterThan(0)
})

test('@odata/client reads and changes one learner by its key', async () => {
  const personals = client.getEntitySet<Personal>('LearnerPersonals')
  const [first] = await personals.query(OData.newOptions().top(1))
  const id = first?.ExternalID ?? ''
  await personals.update(id as never, { QuickNote: 'Synthetic note' })
  const again = await personals.retrieve(id as never)
  expect(again).toMatchObject({ ExternalID: id, QuickNote: 'Synthetic note' })
})

test('@odata/client reports an error of the service as an error', async () => {
  const params = OData.newOptions().filter('NoSuchField eq 1')
  await expect(client.getEntitySet('LearnerIdentifiers').query(params)).rejects.toThrow(
    /NoSuchField|property/i,
  )
})
