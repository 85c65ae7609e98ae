import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { request } from 'undici'
import { createSandbox } from '../../src/sandbox/index.ts'
import type { Sandbox } from '../../src/sandbox/index.ts'
import { fixed, jsonBody, testNow } from './start-sandbox.ts'

// The tables of service.md 1.1 and 4 and of service-facts 4, 7, 13 and 15, written down here once more: what the sandbox
// serves is compared with them, not with its own model.

/** A row of service.md 1.1: its permission, its address as written there, the other addresses of service-facts 13. */
interface Row {
  readonly domain: string
  readonly written: string
  readonly also: readonly string[]
}
const underLearner = (set: string): string[] => [
  `/Learner/V3/${set}`,
  `/Learner/v3/${set}`,
  `/Learner/odata/V3/${set}`,
  `/learner/OData/v3/${set}`,
  `/some/prefix/V3/${set}`,
]
const rows: readonly Row[] = [
  {
    domain: 'Learner.Indentifier',
    written: '/V3/LearnerIdentifiers',
    also: underLearner('LearnerIdentifiers'),
  },
  { domain: 'Learner.Personal', written: '/V3/LearnerPersonals', also: underLearner('LearnerPersonals') },
  { domain: 'Learner.Cultural', written: '/V3/LearnerCulturals', also: underLearner('LearnerCulturals') },
  {
    domain: 'Learner.Registration',
    written: '/V3/LearnerRegistrations',
    also: underLearner('LearnerRegistrations'),
  },
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
  {
    domain: 'Learner.Groups',
    written: '/Learner/v3/LearnerGroups',
    also: ['/V3/LearnerGroups', ...underLearner('LearnerGroups')],
  },
  { domain: 'Learner.Medical', written: '/V3/LearnerMedicals', also: underLearner('LearnerMedicals') },
  { domain: 'Learner.Dietary', written: '/V3/LearnerDietarys', also: underLearner('LearnerDietarys') },
  { domain: 'Learner.Transport', written: '/V3/LearnerTransports', also: underLearner('LearnerTransports') },
  {
    domain: 'Learner.Welfares',
    written: '/V1/LearnerWelfares',
    also: ['/v1/LearnerWelfares', '/V1/Learner/LearnerWelfares', '/stem/V1/LearnerWelfares'],
  },
  {
    domain: 'Learner.Grants',
    written: '/V1/LearnerGrants',
    also: ['/v1/LearnerGrants', '/V1/Learner/LearnerGrants', '/stem/V1/LearnerGrants'],
  },
  {
    domain: 'Learner.ContactDetails',
    written: '/V1/LearnerContactDetails',
    also: [
      '/v1/LearnerContactDetails',
      '/V1/Learner/LearnerContactDetails',
      '/stem/V1/LearnerContactDetails',
    ],
  },
  {
    domain: 'Learner.SEN',
    written: '/Learner/V3/LearnerSENs',
    also: ['/V3/LearnerSENs', ...underLearner('LearnerSENs')],
  },
  {
    domain: 'Learner.SEN',
    written: '/Learner/V3/LearnerSENLookps',
    also: ['/V3/LearnerSENLookps', '/Learner/V3/LearnerSENLookups', ...underLearner('LearnerSENLookps')],
  },
]

/** The permissions of service.md 1.1 and 1.2. */
const domains = [
  ...new Set(rows.map(({ domain }) => domain)),
  'Learner.SEN.Review',
  'Learner.SEN.EHCP',
  'Attendance',
]

const credentials = (token: string): Record<string, string> => ({
  'Ocp-Apim-Subscription-Key': 'sandbox',
  Authorization: `bearer ${token}`,
})
type Rows = readonly Record<string, unknown>[]
interface Answer {
  readonly status: number
  readonly text: string
}
let sandbox: Sandbox
let url: string
beforeAll(async () => {
  const tokens = domains.flatMap((domain) => [
    { token: `only-${domain}`, domains: [domain] },
    { token: `all-but-${domain}`, domains: domains.filter((other) => other !== domain) },
  ])
  sandbox = createSandbox({ now: testNow, tokens })
  url = (await sandbox.listen()).url
})
afterAll(() => sandbox.close())

async function call(
  method: 'GET' | 'POST' | 'PATCH',
  path: string,
  token = 'sandbox',
  body?: string,
  headers: Record<string, string> = jsonBody,
): Promise<Answer> {
  const reply = await request(`${url}${path}`, {
    method,
    headers: { ...credentials(token), ...headers },
    ...(body === undefined ? {} : { body }),
  })
  return { status: reply.statusCode, text: await reply.body.text() }
}
async function read(path: string, token?: string): Promise<Record<string, unknown>> {
  const { status, text } = await call('GET', path, token)
  expect([path, status]).toEqual([path, 200])
  return JSON.parse(text) as Record<string, unknown>
}
const list = async (path: string, token?: string): Promise<Rows> => (await read(path, token))['value'] as Rows

describe.each(rows)('$written', ({ domain, written, also }) => {
  test.each([written, ...also])('%s is one address of it', async (path) => {
    const found = await list(`${path}?$top=2`, `only-${domain}`)
    expect(found).toHaveLength(2)
    expect(found).toEqual(await list(`${written}?$top=2`))
    expect(await call('GET', path, `all-but-${domain}`)).toEqual({
      status: 403,
      text: '{"statusCode":403,"message":"Forbidden. The access token does not hold the permission that this resource needs."}',
    })
  })

  test('one of it is read by its key', async () => {
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

  test('the collection is not written to', async () => {
    for (const method of ['POST', 'PATCH'] as const)
      expect((await call(method, written, 'sandbox', '{}')).status).toBe(405)
  })
})

test('a learner’s personal information is changed with its own permission', async () => {
  const path = `/V3/LearnerPersonals(${fixed.learner})`
  const body = '{"PreferredForename":"Sam"}'
  expect((await call('PATCH', path, 'all-but-Learner.Personal', body)).status).toBe(403)
  expect(await call('PATCH', path, 'only-Learner.Personal', body)).toEqual({ status: 204, text: '' })
  expect(await read(path)).toMatchObject({ PreferredForename: 'Sam' })
})

describe('the expand lists of service.md 1.1', () => {
  const welfare = ['ChildProtectionPlans', 'IncareDetails', 'PersonalEducationPlans']
  const lists: readonly (readonly [path: string, expand: string, links: readonly string[]])[] = [
    ['/V3/LearnerRegistrations', '$expand=Enrolments($expand=EnrolmentStatuses)', ['Enrolments']],
    [
      '/V2/LearnerRegistations',
      'expand=Enrolments,BoarderStatuses,PartTimeRecords,UPNHistory',
      ['Enrolments', 'BoarderStatuses', 'PartTimeRecords', 'UPNHistory'],
    ],
    [
      '/V3/LearnerMedicals',
      '$expand=MedicalConditions,Disabilities,MedicalEvents,MedicalNotes,LearnerParamedicalSupports,MedicalProviders',
      [
        'MedicalConditions',
        'Disabilities',
        'MedicalEvents',
        'MedicalNotes',
        'LearnerParamedicalSupports',
        'MedicalProviders',
      ],
    ],
    [
      '/V3/LearnerDietarys',
      '$expand=FreeMealEligibilityPeriods, FreeSchoolMilkEligibilityPeriods, MealPatterns, DietaryNeeds',
      ['FreeMealEligibilityPeriods', 'FreeSchoolMilkEligibilityPeriods', 'MealPatterns', 'DietaryNeeds'],
    ],
    ['/V1/LearnerWelfares', `$expand=${welfare.join()}`, welfare],
    ['/V1/LearnerGrants', `$expand=${welfare.join()}`, welfare],
    [
      '/V1/LearnerContactDetails',
      '$expand=Addresses,Telephones,Emails,LearnerContactRelationships',
      ['Addresses', 'Telephones', 'Emails', 'LearnerContactRelationships'],
    ],
  ]

  test.each(lists)('%s with %s shows these collections and no other', async (path, expand, links) => {
    const plain = await list(path)
    for (const option of [expand, expand.replace(/^\$?/, ''), expand.replace(/^\$?/, '$')]) {
      const expanded = await list(`${path}?${option.replaceAll(' ', '%20')}`)
      const shown = expanded.map((entity) =>
        Object.fromEntries(Object.entries(entity).filter(([name]) => !links.includes(name))),
      )
      expect(shown).toEqual(plain)
      expect(expanded.filter((entity) => !links.every((link) => Array.isArray(entity[link])))).toEqual([])
      const empty = links.filter((link) => expanded.every((entity) => (entity[link] as Rows).length === 0))
      // Some are too rare for a class.
      expect(empty.length).toBeLessThan(links.length)
    }
  })

  test('an expansion inside an expansion goes one level further, and none goes there unasked', async () => {
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

test('what is not currently available says so at each of its addresses, to those who may have it', async () => {
  const closed = createSandbox({
    now: testNow,
    unavailable: ['LearnerRegistrations', 'LearnerWelfares'],
    tokens: [{ token: 'none', domains: [] }],
  })
  const { url: base } = await closed.listen()
  try {
    const paths = ['/V3/LearnerRegistrations', '/V2/LearnerRegistations', '/V1/LearnerWelfares']
    for (const path of paths.flatMap((one) => [one, `${one}(${fixed.learner})`])) {
      const ask = async (token: string): Promise<readonly [number, unknown]> => {
        const { statusCode, body } = await request(base + path, { headers: credentials(token) })
        return [statusCode, await body.json()]
      }
      expect(await ask('sandbox')).toEqual([
        501,
        { error: { code: 'NotAvailable', message: 'This sub domain is not currently available.' } },
      ])
      expect((await ask('none'))[0]).toBe(403)
    }
    const { statusCode } = await request(`${base}/V1/LearnerGrants`, { headers: credentials('sandbox') })
    expect(statusCode).toBe(200)
  } finally {
    await closed.close()
  }
})

/** The collections of LearnerGroup (service.md 2.2) with the permission of what is in them. */
const members = {
  LearnerIdentifiers: 'Learner.Indentifier',
  LearnerMedicals: 'Learner.Medical',
  LearnerSENs: 'Learner.SEN',
  LearnerDietarys: 'Learner.Dietary',
  LearnerCulturals: 'Learner.Cultural',
  LearnerPersonals: 'Learner.Personal',
  LearnerContactBasics: 'Learner.ContactDetails',
  LearnerContactContactDetails: 'Learner.ContactDetails',
  LearnerContactDetails: 'Learner.ContactDetails',
  LearnerGrants: 'Learner.Grants',
  LearnerWelfares: 'Learner.Welfares',
  LearnerConsents: 'Learner.Personal',
  LearnerSENReviews: 'Learner.SEN.Review',
  LearnerRegistrations: 'Learner.Registration',
  LearnerTransports: 'Learner.Transport',
  LearnerPupilPremiumAwards: 'Learner.Grants',
  LearnerSchoolHistorys: 'Learner.Registration',
  LearnerEHCPs: 'Learner.SEN.EHCP',
  LearnerContactPersonals: 'Learner.ContactDetails',
  LearnerSENEvents: 'Learner.SEN',
  LearnerSENStatements: 'Learner.SEN',
  ContactBasics: 'Learner.ContactDetails',
}

describe('the members of a group (service-facts 15)', () => {
  const groupsOf = (type: string): Promise<Rows> =>
    list(`/Learner/v3/LearnerGroups?$filter=GroupType%20eq%20SIMS.GroupTypeEnum'${type}'`)
  const address = (group: Readonly<Record<string, unknown>> | undefined, type: string): string =>
    `LearnerGroups(ExternalID=${String(group?.['ExternalID'])},GroupType=SIMS.GroupTypeEnum'${type}')`

  test.each([
    ['YearGroup', 'CurrentYearGroup', 'PastoralGroup.Definition.YearGroup'],
    ['PrimaryClass', 'CurrentPrimaryClass', 'PastoralGroup.Definition.PrimaryClass'],
    ['House', 'CurrentHouse', undefined],
  ])('a %s has those whose %s it is', async (type, reference, typeText) => {
    const groups = await groupsOf(type)
    expect(groups).not.toEqual([])
    for (const group of groups) {
      const found = await list(`/Learner/v3/${address(group, type)}/LearnerIdentifiers`)
      const id = String(group['ExternalID'])
      expect(found).toEqual(
        await list(
          `/V3/LearnerIdentifiers?$filter=${reference}/ExternalID%20eq%20${id}%20and%20OnRollState%20eq%20'Current'`,
        ),
      )
      const types = found.map((learner) => (learner[reference] as Record<string, unknown>)['Type'])
      expect(new Set(types).size).toBe(1)
      if (typeText !== undefined) expect(types[0]).toBe(typeText)
    }
  })

  test.each(Object.entries(members))('%s of a group need %s', async (link, domain) => {
    const [group] = await groupsOf('YearGroup')
    const path = `/Learner/v3/${address(group, 'YearGroup')}`
    const found = await list(`${path}/${link}`)
    const learners = await list(`${path}/LearnerIdentifiers?$select=ExternalID`)
    const aboutLearners = !['LearnerContactPersonals', 'ContactBasics'].includes(link)
    if (aboutLearners)
      expect(found.map(({ ExternalID }) => ExternalID)).toEqual(learners.map(({ ExternalID }) => ExternalID))
    else expect(found.length).toBeGreaterThan(learners.length)
    const { [link]: expanded } = await read(`${path}?$expand=${link}`)
    expect(expanded).toEqual(found)
    for (const query of [`/${link}`, `?$expand=${link}`, `?$expand=*`])
      expect((await call('GET', path + query, `all-but-${domain}`)).status).toBe(403)
  })

  test('a key of one part, or of another type, finds no group', async () => {
    const [group] = await groupsOf('YearGroup')
    const id = String(group?.['ExternalID'])
    const keys = [id, `ExternalID=${id}`, `ExternalID=${id},GroupType=SIMS.GroupTypeEnum'House'`]
    for (const key of keys)
      expect((await call('GET', `/Learner/v3/LearnerGroups(${encodeURIComponent(key)})`)).status).toBe(404)
  })
})

describe('the attendance rows of service.md 4', () => {
  const records = '/Attendance/V3/AttendanceRecords'
  const filter = `$filter=${encodeURIComponent(`AttendableEventStart eq 2026-03-02T09:00:00Z and Attendee/ExternalID eq ${fixed.learner}`)}`
  /** A body as service.md 2.10 has it, field by field. */
  const record = {
    ExternalID: fixed.zero,
    Present: true,
    Absent: false,
    RecordedOn: '2026-03-02T09:05:00Z',
    ChangeProcessName: 'Register',
    AttendableEventStart: '2026-03-02T09:00:00Z',
    RecordedBy: { ExternalID: fixed.unknown, Type: 'AuthorisedUser' },
    Attendee: { ExternalID: fixed.learner, Type: 'Learner.Identifier' },
    Event: { ExternalID: fixed.morning, Type: 'Attendance.AttendanceSession' },
    AttendanceCode: { ExternalID: fixed.present, Type: 'Attendance.Lookup' },
    Qualifier: { MinutesLate: 5, Comment: 'Bus' },
  }

  test.each([
    ['GET', `${records}?${filter}`],
    ['GET', `/stem/attendance/v3/AttendanceRecords?${filter.replace('$', '')}`],
    ['GET', `/Attendance/odata/V3/AttendanceRecords?${filter}`],
    ['GET', `/V2/Attendance/AttendanceRecords?$filter=AttendableEventStart%20eq%202026-03-02T09:00:00Z`],
    ['GET', `${records}/SIMS.Changes(startDate=2026-06-09)`],
    ['GET', '/Attendance/V3/StatutoryAttendanceRecordHistorys'],
    ['GET', '/Attendance/V3/StatutoryAttendanceRecordHistorys/SIMS.Changes(startDate=2026-06-09T00:00:00Z)'],
    ['GET', '/Attendance/V3/StatutoryAttendanceSessions?$top=1'],
    ['GET', '/Attendance/V3/AttendanceLookups?top=1'],
  ] as const)('%s %s needs the permission Attendance and no other', async (method, path) => {
    expect((await call(method, path, 'only-Attendance')).status).toBe(200)
    expect((await call(method, path, 'all-but-Attendance')).status).toBe(403)
  })

  test('a GET without $filter is refused', async () => {
    expect((await call('GET', records)).status).toBe(400)
  })

  test('a POST is echoed with its id and context, and can be read by that id', async () => {
    const body = JSON.stringify(record)
    expect((await call('POST', records, 'all-but-Attendance', body)).status).toBe(403)
    const { status, text } = await call('POST', records, 'only-Attendance', body)
    expect(status).toBe(201)
    const created = JSON.parse(text) as Record<string, unknown>
    const id = String(created['ExternalID'])
    expect(id).toMatch(/^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$/)
    expect(id).not.toBe(fixed.zero)
    const context = `${url}/Attendance/V3/$metadata#AttendanceRecords/$entity`
    expect(created).toEqual({
      '@odata.context': context,
      ...record,
      ExternalID: id,
      fabricated: null,
    })
    const single = await read(`${records}(${id})`, 'only-Attendance')
    expect(single).toEqual({ '@odata.context': context, ...record, ExternalID: id })
    expect((await call('GET', `${records}(${id})`, 'all-but-Attendance')).status).toBe(403)
    expect(await list(`${records}?${filter}`)).toEqual([{ ...record, ExternalID: id }])
  })

  test('single quotes around strings are read too', async () => {
    const body = JSON.stringify(record).replaceAll('"', "'")
    expect((await call('POST', records, 'sandbox', body)).status).toBe(201)
  })

  test('the V2 batch answers each record, with the error array of service.md 7', async () => {
    const flat = {
      '@odata.type': '#AttendanceService.Models.OData.AttendanceRecord',
      ...{ Present: true, Absent: false, Comment: 'Bus', MinutesLate: null },
      Learner: fixed.learner,
      AttendableEvent: fixed.morning,
      SchoolAttendanceCode: fixed.present,
    }
    const wrong = { ...flat, AttendableEvent: fixed.unknown, SchoolAttendanceCode: fixed.zero }
    const parts = [flat, wrong].map((body, index) =>
      [
        '--changeset_1',
        'Content-Type: application/http',
        'Content-Transfer-Encoding: binary',
        `Content-ID: ${index + 1}`,
        '',
        'POST /AttendanceServiceFarm1/OData/V1/AttendanceRecords HTTP/1.1',
        'Content-Type: application/json;odata.metadata=minimal',
        'Prefer: return=representation',
        'Accept: application/json;odata.metadata=minimal',
        'Accept-Charset: UTF-8',
        '',
        JSON.stringify(body),
      ].join('\r\n'),
    )
    const batch = [
      '--batch_1',
      'Content-Type: multipart/mixed; boundary=changeset_1',
      '',
      ...parts,
      '--changeset_1--',
      '--batch_1--',
      '',
    ].join('\r\n')
    const path = '/sp-api-write-back-partner-live/V2/Attendance/$batch'
    const headers = { 'Content-Type': 'multipart/mixed; boundary=batch_1' }
    expect((await call('POST', path, 'all-but-Attendance', batch, headers)).status).toBe(403)
    const { status, text } = await call('POST', path, 'only-Attendance', batch, headers)
    expect(status).toBe(200)
    expect(text.match(/HTTP\/1\.1 \d{3}/g)).toEqual(['HTTP/1.1 201', 'HTTP/1.1 400'])
    const [errors] = /\[\{.*\}\]/.exec(text) ?? ['[]']
    const sequence = expect.stringMatching(/^[0-9a-f-]{36}$/) as unknown
    expect(JSON.parse(errors)).toEqual(
      ['ATT_VAL_2', 'ATT_VAL_3'].map((ErrorCode) => ({
        Message: expect.any(String) as unknown,
        ErrorCode,
        ResourceIdentifier: '',
        SequenceID: sequence,
      })),
    )
  })

  test('codes are lookups, also of three characters (service-facts 7)', async () => {
    const found = await list('/Attendance/V3/AttendanceLookups?$filter=length(Code)%20eq%203')
    expect(found.length).toBeGreaterThan(0)
    const guid = expect.stringMatching(/^[0-9a-f-]{36}$/) as unknown
    for (const lookup of found)
      expect(lookup).toEqual({
        ExternalID: guid,
        LookupType: 'AttendanceCode',
        Code: expect.stringMatching(/^[A-Z]\d\d$/) as unknown,
        Description: expect.any(String) as unknown,
        DisplayOrder: expect.any(Number) as unknown,
        IsVisible: expect.any(Boolean) as unknown,
        ResourceProvider: expect.objectContaining({ ExternalID: guid }) as unknown,
        StatutoryAttendanceCode: { ExternalID: guid, Type: 'Attendance.Lookup.StatutoryAttendanceCode' },
      })
  })
})

test('curl reads the learner browse with the words of service.md', async () => {
  const headers = Object.entries(credentials('only-Learner.Indentifier')).flatMap(([name, value]) => [
    '-H',
    `${name}: ${value}`,
  ])
  const options = ['-sS', '--get', '--fail', '--max-time', '10', '-w', '\n%{http_code} %{content_type}']
  const { stdout } = await promisify(execFile)('curl', [
    ...options,
    ...headers,
    '--data-urlencode',
    "$filter=OnRollState eq 'Current'",
    `${url}/V3/LearnerIdentifiers`,
  ])
  const [body = '', status] = stdout.split('\n')
  expect(status).toBe('200 application/json; odata.metadata=minimal')
  const { value } = JSON.parse(body) as { value: Rows }
  expect(value).toHaveLength(30)
  expect(Object.keys(value[0] ?? {})).toEqual([
    'ExternalID',
    'Forename',
    'Surname',
    'GenderCategory',
    'AgeMonths',
    'DoNotCommunicate',
    'CurrentYearGroup',
    'CurrentPrimaryClass',
    'CurrentHouse',
    'OnRollState',
    'DateOfApplication',
    'Photograph',
  ])
})
