import { describe, expect, test } from 'vitest'
import { shareSandbox } from './share-sandbox.ts'
import type { Rows } from './share-sandbox.ts'
import { fixed } from './start-sandbox.ts'

// This file repeats the table of service.md 1.1 with the address forms of service-facts 13, so that the tests compare the sandbox
// with the documentation and not with the model of the sandbox.

const { call, read, list } = shareSandbox()

/** A row of service.md 1.1: the permission, the address in service.md, and the other addresses of service-facts 13. */
interface Row {
  readonly domain: string
  readonly written: string
  readonly also: readonly string[]
}
const v3 = (domain: string, set: string, written = `/V3/${set}`, ...more: string[]): Row => {
  const below = [
    '/V3',
    '/Learner/V3',
    '/Learner/v3',
    '/Learner/odata/V3',
    '/learner/OData/v3',
    '/some/prefix/V3',
  ]
  return { domain, written, also: [...below.map((root) => `${root}/${set}`), ...more] }
}
const v1 = (domain: string, set: string): Row => ({
  domain,
  written: `/V1/${set}`,
  also: [`/v1/${set}`, `/V1/Learner/${set}`, `/stem/V1/${set}`],
})
const rows: readonly Row[] = [
  v3('Learner.Indentifier', 'LearnerIdentifiers'),
  v3('Learner.Personal', 'LearnerPersonals'),
  v3('Learner.Cultural', 'LearnerCulturals'),
  v3('Learner.Registration', 'LearnerRegistrations'),
  {
    domain: 'Learner.Registration',
    written: '/V2/LearnerRegistations',
    also: [
      '/V2/LearnerRegistrations',
      '/V2/Learner/LearnerRegistations',
      '/V3/LearnerRegistations',
      '/stem/V2/LearnerRegistations',
    ],
  },
  v3('Learner.Groups', 'LearnerGroups', '/Learner/v3/LearnerGroups'),
  v3('Learner.Medical', 'LearnerMedicals'),
  v3('Learner.Dietary', 'LearnerDietarys'),
  v3('Learner.Transport', 'LearnerTransports'),
  v1('Learner.Welfares', 'LearnerWelfares'),
  v1('Learner.Grants', 'LearnerGrants'),
  v1('Learner.ContactDetails', 'LearnerContactDetails'),
  v3('Learner.SEN', 'LearnerSENs', '/Learner/V3/LearnerSENs'),
  v3('Learner.SEN', 'LearnerSENLookps', '/Learner/V3/LearnerSENLookps', '/Learner/V3/LearnerSENLookups'),
]

describe.each(rows)('the collection of the sandbox at $written', ({ domain, written, also }) => {
  test.each([written, ...also])('is served at the address %s', async (path) => {
    const found = await list(`${path}?$top=2`, `only-${domain}`)
    expect(found).toHaveLength(2)
    expect(found).toEqual(await list(`${written}?$top=2`))
    expect(await call('GET', path, `all-but-${domain}`)).toEqual({
      status: 403,
      text: '{"statusCode":403,"message":"Forbidden. The access token does not hold the permission that this resource needs."}',
    })
  })

  test('returns each entity by its key', async () => {
    const [first = {}] = await list(`${written}?$top=1`)
    const id = String(first['ExternalID'])
    const keys =
      'GroupType' in first
        ? [
            `ExternalID=${id},GroupType=SIMS.GroupTypeEnum'${String(first['GroupType'])}'`,
            `GroupType='${String(first['GroupType'])}',ExternalID=${id}`,
          ]
        : 'LookupType' in first
          ? [`ExternalID=${id},LookupType=Svc.LookupType'${String(first['LookupType'])}'`]
          : [id, id.toUpperCase(), `ExternalID=${id}`]
    for (const key of keys) {
      const path = `${written}(${encodeURIComponent(key)})`
      const { '@odata.context': context, ...entity } = await read(path, `only-${domain}`)
      expect(entity).toEqual(first)
      expect(context).toMatch(/\$metadata#Learner\w+\/\$entity$/)
      expect((await call('GET', path, `all-but-${domain}`)).status).toBe(403)
      const unknown = key.replace(new RegExp(id, 'i'), fixed.unknown)
      expect((await call('GET', `${written}(${encodeURIComponent(unknown)})`)).status).toBe(404)
    }
  })

  test('rejects writes', async () => {
    for (const method of ['POST', 'PATCH'] as const)
      expect((await call(method, written, 'sandbox', '{}')).status).toBe(405)
  })
})

test("the sandbox lets a caller change a learner's personal information only with the permission Learner.Personal", async () => {
  const path = `/V3/LearnerPersonals(${fixed.learner})`
  const body = '{"PreferredForename":"Sam"}'
  expect((await call('PATCH', path, 'all-but-Learner.Personal', body)).status).toBe(403)
  expect(await call('PATCH', path, 'only-Learner.Personal', body)).toEqual({ status: 204, text: '' })
  expect(await read(path)).toMatchObject({ PreferredForename: 'Sam' })
})

describe('an attendance resource of service.md 4 in the sandbox', () => {
  const records = '/Attendance/V3/AttendanceRecords'
  const filter = 'filter=AttendableEventStart%20eq%202026-03-02T09:00:00Z'
  test.each([
    `${records}?$${filter}`,
    `/stem/attendance/v3/AttendanceRecords?${filter}`,
    `/Attendance/odata/V3/AttendanceRecords?$${filter}`,
    `/V2/Attendance/AttendanceRecords?$${filter}`,
    `${records}/SIMS.Changes(startDate=2026-06-09)`,
    '/Attendance/V3/StatutoryAttendanceRecordHistorys',
    '/Attendance/V3/StatutoryAttendanceRecordHistorys/SIMS.Changes(startDate=2026-06-09T00:00:00Z)',
    '/Attendance/V3/StatutoryAttendanceSessions?$top=1',
    '/Attendance/V3/AttendanceLookups?top=1',
  ])('requires only the permission Attendance for GET %s', async (path) => {
    expect((await call('GET', path, 'only-Attendance')).status).toBe(200)
    expect((await call('GET', path, 'all-but-Attendance')).status).toBe(403)
  })

  test.each([
    records,
    '/V2/Attendance/AttendanceRecords',
    '/sp-api-write-back-partner-live/V2/Attendance/$batch',
  ])('requires the permission Attendance for POST %s', async (path) => {
    expect((await call('POST', path, 'all-but-Attendance', '{}')).status).toBe(403)
    expect((await call('POST', path, 'only-Attendance', '{}')).status).not.toBe(403)
  })
})

describe('the sandbox with $expand (service.md 1.1)', () => {
  const welfare = ['ChildProtectionPlans', 'IncareDetails', 'PersonalEducationPlans']
  const medical = [
    ...['MedicalConditions', 'Disabilities', 'MedicalEvents', 'MedicalNotes'],
    ...['LearnerParamedicalSupports', 'MedicalProviders'],
  ]
  const dietary = [
    'FreeMealEligibilityPeriods',
    'FreeSchoolMilkEligibilityPeriods',
    'MealPatterns',
    'DietaryNeeds',
  ]
  const registration = ['Enrolments', 'BoarderStatuses', 'PartTimeRecords', 'UPNHistory']
  const contact = ['Addresses', 'Telephones', 'Emails', 'LearnerContactRelationships']
  const lists: readonly (readonly [path: string, expand: string, links: readonly string[]])[] = [
    ['/V3/LearnerRegistrations', '$expand=Enrolments($expand=EnrolmentStatuses)', ['Enrolments']],
    ['/V2/LearnerRegistations', `expand=${registration.join()}`, registration],
    ['/V3/LearnerMedicals', `$expand=${medical.join()}`, medical],
    ['/V3/LearnerDietarys', `$expand=${dietary.join(', ')}`, dietary],
    ['/V1/LearnerWelfares', `$expand=${welfare.join()}`, welfare],
    ['/V1/LearnerGrants', `$expand=${welfare.join()}`, welfare],
    ['/V1/LearnerContactDetails', `$expand=${contact.join()}`, contact],
  ]

  test.each(lists)(
    'expands at %s exactly the collections that service.md lists, for the query %s',
    async (path, expand, links) => {
      const plain = await list(path)
      for (const option of [expand, expand.replace(/^\$?/, ''), expand.replace(/^\$?/, '$')]) {
        const expanded = await list(`${path}?${option.replaceAll(' ', '%20')}`)
        const shown = expanded.map((entity) =>
          Object.fromEntries(Object.entries(entity).filter(([name]) => !links.includes(name))),
        )
        expect(shown).toEqual(plain)
        expect(expanded.filter((entity) => !links.every((link) => Array.isArray(entity[link])))).toEqual([])
        const empty = links.filter((link) => expanded.every((entity) => (entity[link] as Rows).length === 0))
        // Some collections are so rare that a single class has no items of them.
        expect(empty.length).toBeLessThan(links.length)
      }
    },
  )

  test('allows one nested level of $expand, and returns that level only if the query names it', async () => {
    const inside = async (expand: string): Promise<Rows> =>
      (await list(`/V3/LearnerRegistrations?$expand=${expand}`)).flatMap(
        ({ Enrolments }) => Enrolments as Rows,
      )
    for (const enrolment of await inside('Enrolments'))
      expect(enrolment).not.toHaveProperty('EnrolmentStatuses')
    for (const { EnrolmentStatuses } of await inside('Enrolments($expand=EnrolmentStatuses)'))
      expect(EnrolmentStatuses).toEqual([
        expect.objectContaining({ EnrolmentStatus: expect.anything() as unknown }),
      ])
  })
})
