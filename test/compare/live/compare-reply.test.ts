import { describe, expect, it } from 'vitest'

import { toPartners } from '../../../src/app/partners.ts'
import { compareAccepted } from '../../../src/compare/live/check-marks.ts'
import { openReply } from '../../../src/compare/live/compare-reply.ts'
import type { JudgedMark } from '../../../src/compare/live/follow-marks.ts'
import { unknownPlace } from '../../../src/compare/live/marks.ts'
import { verdictOnly } from '../../../src/compare/diff/findings.ts'
import type { WireWrite } from '../../../src/compare/wire-exchange.ts'
import { parseConfig } from '../../../src/config/index.ts'
import { createBatchEncoder, noBatchLimits, type PartReply } from '../../../src/v2/index.ts'
import { batchOf, flatRecord, guid } from '../../support/batch-request.ts'

const [partner] = toPartners(
  parseConfig({
    upstreams: { v3: { baseUrl: 'http://127.0.0.1:1' }, v2: { baseUrl: 'http://127.0.0.1:2' } },
    partners: [{ id: 'acme', match: { any: true }, stage: 'shadow' }],
  }),
)
if (partner === undefined) throw new Error('no partner')

/** Returns the mark of learner `n` as both V2 and V3 show the mark. */
const markOf = (n: number, fields: object = {}): object => ({
  ...{ ExternalID: guid(100 + n), Present: true, Absent: false, RecordedOn: '2026-06-10T10:00:00.123Z' },
  ...{ ChangeProcessName: 'Register', AttendableEventStart: '2026-06-10T09:00:00Z', RecordedBy: guid(7) },
  ...{ Learner: guid(n), AttendableEvent: guid(900_000), SchoolAttendanceCode: guid(800_000) },
  ...{ MinutesLate: null, Comment: null, AttendanceHistorys: [], ...fields },
})

interface Answer {
  readonly status: number
  readonly body?: unknown
}
const accepted = (n: number, fields: object = {}): Answer => ({
  status: 201,
  body: { '@odata.context': 'http://v2.example/$metadata#AttendanceRecords/$entity', ...markOf(n, fields) },
})
const refused = (code: string): Answer => ({
  status: 400,
  body: [{ Message: 'refused', ErrorCode: code, ResourceIdentifier: '', SequenceID: guid(5) }],
})

/** Returns a batch of these records with the answers of V2. */
function written(records: readonly (object | string)[], answers: readonly Answer[], inner: string[] = []): WireWrite {
  const { headers, body } = batchOf(records, { inner })
  const encoder = createBatchEncoder('flat', () => guid(1))
  const parts = answers.map(({ status, body: json }, index): PartReply => ({
    ...{ contentId: String(index + 1), contentIdInHttp: false, changeset: undefined, status },
    json: json === undefined ? undefined : JSON.stringify(json),
  }))
  const text = parts.map((part) => encoder.part(part)).join('') + encoder.close(1)
  const fields = ['Content-Type', headers['Content-Type'] ?? headers['content-type'] ?? '']
  return {
    ...{ kind: 'batch', target: '/V2/Attendance/$batch', receivedMs: Date.parse('2026-06-10T10:00:00Z') },
    request: { fields, body: Buffer.from(body) },
    reply: { status: 200, reason: 'OK', fields: ['Content-Type', encoder.contentType], body: Buffer.from(text) },
  }
} // prettier-ignore

/** Compares a write with the marks that V3 shows, by learner. `unknown` stands for a mark that could not be read. */
async function judge(write: WireWrite, shown: Readonly<Record<number, object | 'missing' | 'unknown'>>) {
  const opened = await openReply(write, {
    ...{ partner: partner ?? expect.fail(), limits: noBatchLimits, rules: undefined },
    placesOf: (keys) => keys.map(() => unknownPlace),
  })
  if (opened.kind !== 'open') return opened
  const marks = opened.accepted.flatMap((followed): JudgedMark[] => {
    const own = Object.entries(shown).find(([n]) => guid(Number(n)) === followed.learner)?.[1]
    if (own === undefined) return []
    if (own === 'unknown') return [{ followed, comparison: verdictOnly('unknown'), shown: undefined }]
    const mark = own === 'missing' ? undefined : { ...own }
    return [{ followed, comparison: compareAccepted(followed.mark, mark, undefined), shown: mark }]
  })
  return opened
    .judge(marks)
    .map(({ verdict, differences, equivalences }) =>
      [
        verdict,
        ...differences.map(({ path, kind, v2Class, v3Class }) => `${path} ${kind} ${v2Class} ${v3Class}`),
        ...equivalences.map(({ rule, path }) => `${rule} ${path}`),
      ].join(', '),
    )
}

describe('the comparison of a reply of V2 with the marks of V3', () => {
  const context = 'equivalent, context-address part/@odata.context'

  it('finds no difference except the context address if V3 shows the mark of the reply', async () => {
    expect(await judge(written([flatRecord(1)], [accepted(1)]), { 1: markOf(1) })).toEqual([context])
  })

  it.each<[string, object, object, string]>([
    ['a comment that V3 lost', { Comment: 'bus' }, { Comment: null }, 'differs, Comment null length:1-9 null'],
    ['minutes that V3 lost', { MinutesLate: 5 }, { MinutesLate: 0 }, 'MinutesLate value number:1-5 number:0'],
    ['another attendance code', {}, { SchoolAttendanceCode: guid(800_001), Present: false, Absent: true }, 'SchoolAttendanceCode value code:present code:absent'],
    ['another id', {}, { ExternalID: guid(999) }, 'ExternalID value guid guid'],
    ['another user in RecordedBy', {}, { RecordedBy: guid(8) }, 'RecordedBy value guid guid'],
    ['another time in RecordedOn', {}, { RecordedOn: '2026-06-10T11:00:00.123Z' }, 'RecordedOn value time time:+3600s'],
    ['another ChangeProcessName', {}, { ChangeProcessName: 'Other' }, 'ChangeProcessName value length:1-9 length:1-9'],
  ])('reports %s', async (_name, sent, shown, expected) => {
    const write = written([flatRecord(1, sent)], [accepted(1, sent)])
    expect(await judge(write, { 1: markOf(1, { ...sent, ...shown }) })).toEqual([expect.stringContaining(expected)])
  }) // prettier-ignore

  it('returns "onlyV2" if V3 does not show the mark, and "unknown" if V3 could not be read', async () => {
    const write = written([flatRecord(1), flatRecord(2)], [accepted(1), accepted(2)])
    expect(await judge(write, { 1: 'missing', 2: 'unknown' })).toEqual(['onlyV2', 'unknown'])
  })

  it('leaves out a record whose mark was not read from V3', async () => {
    const write = written([flatRecord(1), flatRecord(2)], [accepted(1), accepted(2)])
    expect(await judge(write, { 2: markOf(2) })).toEqual([context])
  })

  it('compares the mark of V3 with the sent record if the client asked for a reply without content', async () => {
    const minimal = ['Prefer: return=minimal']
    const write = written([flatRecord(1, { Comment: 'bus' })], [{ status: 204 }], minimal)
    expect(await judge(write, { 1: markOf(1, { Comment: 'bus' }) })).toEqual(['same'])
    expect(await judge(write, { 1: markOf(1, { Comment: 'train' }) })).toEqual([
      'differs, Comment value length:1-9 length:1-9',
    ])
  })
})

describe('the comparison of a record that V2 or the adapter refuses', () => {
  const broken = flatRecord(1, { Learner: 'no guid' })

  it('returns "unchecked" if V2 refused the record but the adapter would have posted the record', async () => {
    const write = written([flatRecord(1), flatRecord(2)], [refused('ATT_VAL_3'), accepted(2)])
    expect(await judge(write, { 2: markOf(2) })).toEqual([
      'unchecked',
      'equivalent, context-address part/@odata.context',
    ])
    expect(await judge(written([flatRecord(1)], [refused('ATT_VAL_2')]), {})).toEqual(['unchecked'])
  })

  it.each([401, 403, 408, 429, 500, 503])('returns "unknown" if V2 answered the record with status %i', async (status) => {
    expect(await judge(written([flatRecord(1)], [{ status, body: [] }]), {})).toEqual(['unknown'])
  }) // prettier-ignore

  it('reports different statuses if V2 accepted the record but the adapter would refuse the record', async () => {
    expect(await judge(written([broken], [accepted(1)]), {})).toEqual([
      expect.stringMatching(/^differs, part\/status value status:201 status:400/),
    ])
  })

  it('compares the error codes if both V2 and the adapter refuse the record', async () => {
    expect(await judge(written([broken], [refused('ATT_VAL_9')]), {})).toEqual([
      expect.stringMatching(/^differs, errors\/ErrorCode value error:ATT_VAL_9 /),
    ])
  })
})

describe('the comparison of the form of a reply of V2', () => {
  it('reports a reply that has one part too few or too many', async () => {
    const two = [flatRecord(1), flatRecord(2)]
    expect(await judge(written(two, [accepted(1)]), { 1: markOf(1) })).toEqual([
      expect.stringMatching(/^differs, reply\/parts count count:1 count:2/),
      'onlyV3',
    ])
    expect(await judge(written([flatRecord(1)], [accepted(1), accepted(2)]), { 1: markOf(1) })).toEqual([
      expect.stringMatching(/^differs, reply\/parts count count:2 count:1/),
      'onlyV2',
    ])
  })

  it('compares no outcomes if the ids of the batch do not match', async () => {
    const write = written([flatRecord(1)], [])
    const fields = ['Content-Type', 'multipart/mixed; boundary=batch_other']
    const found = await judge({ ...write, request: { ...write.request, fields } }, {})
    expect(found).toEqual([expect.stringContaining('no-outcome-shown part')])
  })
})
