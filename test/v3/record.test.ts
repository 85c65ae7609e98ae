import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import * as z from 'zod'

import { encodeRecord, isV3Reply, type V3Record, ZERO_GUID } from '../../src/v3/record.ts'

const id = 'ABCDEF01-0000-4000-8000-000000000001'

describe('isV3Reply', () => {
  it('accepts the reply of service.md 4 with further members, or with an id alone', () => {
    const reply = {
      ExternalID: id,
      Present: true,
      Absent: false,
      RecordedOn: '2026-06-10T10:00:00Z',
      ChangeProcessName: null,
      AttendableEventStart: null,
      RecordedBy: null,
      Attendee: { ExternalID: id, Type: 'Learner.Identifier' },
      Event: { ExternalID: id, Type: null },
      AttendanceCode: { ExternalID: id },
      Qualifier: { MinutesLate: null, Comment: 'x' },
    }
    expect(isV3Reply({ '@odata.context': 'x', ...reply, fabricated: null })).toBe(true)
    expect(isV3Reply({ ExternalID: id })).toBe(true)
  })

  it('accepts null for every member but the id, and a reference with null members (service.md 2)', () => {
    const none = { ExternalID: null, Type: null }
    const names = ['Present', 'Absent', 'RecordedOn', 'ChangeProcessName', 'AttendableEventStart']
    const references = ['RecordedBy', 'Attendee', 'Event', 'AttendanceCode']
    const nulls = Object.fromEntries([...names, ...references, 'Qualifier'].map((name) => [name, null]))
    expect(isV3Reply({ ExternalID: id, ...nulls })).toBe(true)
    for (const name of references) expect(isV3Reply({ ExternalID: id, [name]: none })).toBe(true)
    expect(isV3Reply({ ...nulls, ExternalID: null })).toBe(false)
  })

  it('accepts and rejects the same replies as an equivalent zod schema, for random members', () => {
    const guid = z.string().regex(/^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i)
    const reference = z.object({ ExternalID: guid.nullish(), Type: z.string().nullish() })
    const schema = z.object({
      ExternalID: guid.refine((text) => text !== ZERO_GUID),
      Present: z.boolean().nullish(),
      Absent: z.boolean().nullish(),
      RecordedOn: z.string().nullish(),
      ChangeProcessName: z.string().nullish(),
      AttendableEventStart: z.string().nullish(),
      RecordedBy: reference.nullish(),
      Attendee: reference.nullish(),
      Event: reference.nullish(),
      AttendanceCode: reference.nullish(),
      Qualifier: z.object({ MinutesLate: z.int32().nullish(), Comment: z.string().nullish() }).nullish(),
    })
    const leaf = fc.constantFrom(
      id,
      ZERO_GUID,
      `{${id}}`,
      `${id}\n`,
      'x',
      true,
      null,
      undefined,
      5,
      -2_147_483_648,
      2_147_483_648,
      1.5,
    )
    const inner = fc.oneof(
      leaf,
      fc.constant([]),
      fc.record({ ExternalID: leaf, Type: leaf, MinutesLate: leaf, Comment: leaf }, { requiredKeys: [] }),
    )
    const good = {
      ExternalID: id,
      Present: true,
      Attendee: { ExternalID: id },
      Qualifier: { MinutesLate: 5 },
    }
    const members = fc.dictionary(fc.constantFrom(...Object.keys(schema.shape)), inner, { maxKeys: 3 })
    for (const none of [undefined, null, [good], { error: { code: 'x', message: 'y' } }])
      expect(isV3Reply(none)).toBe(false)
    fc.assert(
      fc.property(members, (own) => {
        const reply = { ...good, ...own }
        expect(isV3Reply(reply)).toBe(schema.safeParse(reply).success)
      }),
      { numRuns: 2_000 },
    )
  })
})

const whole: V3Record = {
  ExternalID: '00000000-0000-0000-0000-000000000000',
  Present: true,
  Absent: false,
  RecordedOn: '2026-06-10T10:00:00Z',
  ChangeProcessName: 'Own "name"',
  AttendableEventStart: '2026-06-10T08:00:00Z',
  RecordedBy: { ExternalID: 'u', Type: 'AuthorisedUser' },
  Attendee: { ExternalID: 'a', Type: 'Learner.Identifier' },
  Event: { ExternalID: 'e', Type: null },
  AttendanceCode: { ExternalID: 'c' },
  Qualifier: { MinutesLate: -5, Comment: 'line\n"\u2028\ud800' },
}

describe('encodeRecord', () => {
  it('writes the full body with the members in the order of the service (service.md 2.10)', () => {
    expect(encodeRecord(whole, 'full')).toBe(JSON.stringify(whole))
  })

  it('writes only the members of the published minimum if the profile is minimal (service-facts 6)', () => {
    const { Attendee, Event, AttendanceCode, Qualifier } = whole
    expect(encodeRecord(whole, 'minimal')).toBe(
      JSON.stringify({ Attendee, Event, AttendanceCode, Qualifier }),
    )
  })

  it('writes ids in lower case', () => {
    const upper = { ExternalID: id, Type: 'T' }
    const record = { ...whole, RecordedBy: upper, Attendee: upper, Event: upper, AttendanceCode: upper }
    for (const profile of ['full', 'minimal'] as const) {
      const text = encodeRecord(record, profile)
      expect([text.includes(id), text.split(id.toLowerCase()).length]).toEqual([
        false,
        profile === 'full' ? 5 : 4,
      ])
    }
  })

  const changes: [name: string, change: Partial<V3Record>][] = [
    ['nulls', { RecordedOn: null, ChangeProcessName: null, AttendableEventStart: null, RecordedBy: null }],
    ['missing members', { RecordedOn: undefined, ChangeProcessName: undefined, AttendableEventStart: undefined, RecordedBy: undefined }],
    ['an empty qualifier', { Qualifier: { MinutesLate: undefined, Comment: undefined } }],
    ['a qualifier of nulls', { Qualifier: { MinutesLate: null, Comment: null } }],
    ['MinutesLate alone', { Qualifier: { MinutesLate: 2_147_483_647, Comment: undefined } }],
    ['Comment alone', { Qualifier: { MinutesLate: undefined, Comment: '' } }],
  ] // prettier-ignore
  it.each(changes)(
    'writes null members, and leaves out missing members, of a record with %s',
    (_name, change) => {
      const record = { ...whole, ...change }
      expect(encodeRecord(record, 'full')).toBe(JSON.stringify(record))
    },
  )
})
