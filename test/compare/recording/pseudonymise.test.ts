import fc from 'fast-check'
import { describe, expect, it } from 'vitest'

import { toMapping } from '../../../src/app/partners.ts'
import { classOf } from '../../../src/compare/diff/classes.ts'
import type { RecordedExchange } from '../../../src/compare/recording/exchange.ts'
import { maskExchange } from '../../../src/compare/recording/mask-credentials.ts'
import { createPseudonyms, pseudonymise } from '../../../src/compare/recording/pseudonyms.ts'
import { fieldOf } from '../../../src/compare/wire-exchange.ts'
import { parseConfig } from '../../../src/config/index.ts'
import { toV3Record } from '../../../src/translate/index.ts'
import { inspectBatch, noBatchLimits } from '../../../src/v2/index.ts'
import { loadFixtures } from '../../e2e/support/fixture.ts'
import { markedExchange } from './exchanges.ts'

const pseudonyms = createPseudonyms(Buffer.alloc(32, 7))
const exchanges = (await loadFixtures()).map(({ name, request, response }) => ({
  name,
  exchange: markedExchange({
    target: '/V2/Attendance/$batch',
    contentType: request.headers.find(([own]) => own.toLowerCase() === 'content-type')?.[1],
    body: request.body,
    reply: {
      ...{ status: 200, reason: 'OK', fields: response?.headers.flat() ?? [] },
      body: response?.body ?? Buffer.alloc(0),
    },
  }),
}))
const [partner] = parseConfig({ upstreams: { v3: { baseUrl: 'http://v3.test' } } }).partners
if (partner === undefined) throw new Error('no partner')
const mapping = toMapping(partner)

function inspectedOf({ request }: RecordedExchange) {
  const contentType = fieldOf(request, 'content-type')
  const { batch, findings } = inspectBatch(request.body, contentType, { limits: noBatchLimits })
  return {
    findings: findings.map(({ severity, code, part }) => ({ severity, code, part })),
    idsAgree: batch?.idsAgree,
    changesets: batch?.changesets.length,
    parts: batch?.parts.map(({ record, changeset, faults }) => {
      const translated = record && toV3Record(record, mapping, '2026-09-07T08:40:00.000Z')
      return {
        changeset,
        faults: faults?.map(({ code }) => code),
        flags: record && [record.Present, record.Absent, classOfMinutes(record.MinutesLate)],
        comment: record && classOf(record.Comment, 'text'),
        unmapped: record?.unmapped?.length,
        v3: translated && [translated.faults?.length, translated.record && Object.keys(translated.record)],
      }
    }),
  }
}

/** Minutes of a day stay as they are. */
const classOfMinutes = (minutes: number | null | undefined): unknown =>
  typeof minutes === 'number' && Math.abs(minutes) > 1_440 ? Math.sign(minutes) : minutes

describe('a pseudonymised fixture', () => {
  it.each(exchanges)('$name decodes, translates and is found the same', ({ name, exchange }) => {
    const before = inspectedOf(exchange)
    const mapped = pseudonymise(pseudonyms, maskExchange(exchange))
    // Values that are faulty in their charset have no pseudonyms that are.
    if (before.parts === undefined || name === 'charset-single-byte' || name === 'charset-wrong') {
      expect(mapped).toBeUndefined()
      return
    }
    expect(mapped && inspectedOf(mapped)).toEqual(before)
  })
})

describe('a pseudonym', () => {
  const text = fc.oneof(
    fc.string({ maxLength: 120 }),
    fc.string({ unit: 'grapheme', maxLength: 60 }),
    fc.constantFrom('Bus late', 'a', 'Müller', 'Zoë Ångström', '', '12', 'b'.repeat(300), '2026-13-40'),
  )
  it('of a text is a mark of its length class, and nothing else', () => {
    fc.assert(
      fc.property(text, (value) => {
        const mapped = pseudonyms.text(value)
        expect(classOf(mapped, 'text')).toBe(classOf(value, 'text'))
        if (/[\p{L}\p{N}]/u.test(value)) expect(mapped).toMatch(/^x+$/)
      }),
    )
  })

  it('of a guid is a guid, the same one with hyphens or without, whatever encloses it', () => {
    const id = '41dba12f-bcce-470b-8ce4-b260ffb62649'
    const mapped = pseudonyms.text(id)
    const digits = (guid: string): string => guid.replaceAll('-', '')
    expect([mapped === id, mapped]).toEqual([false, expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}$/)]) // prettier-ignore
    expect(pseudonyms.text(id.toUpperCase())).toBe(mapped.toUpperCase())
    expect(pseudonyms.text(` {${id}} (${id}) ${digits(id)}`)).toBe(
      ` {${mapped}} (${mapped}) ${digits(mapped)}`,
    )
    expect(pseudonyms.words(`batch_${digits(id)}`)).toBe(`batch_${digits(mapped)}`)
    expect(pseudonyms.text('00000000-0000-0000-0000-000000000000')).toMatch(/^[0-]+$/)
  })

  it('of a date is another one, on the same day of the week and at the same time', () => {
    const mapped = pseudonyms.text('2026-09-07T08:40:01.5+01:00')
    expect([new Date(mapped).getUTCDay(), mapped.slice(10)]).toEqual([1, 'T08:40:01.5+01:00'])
    expect(pseudonyms.time(Date.parse('2026-09-07T00:00:00Z'))).toBe(Date.parse(mapped.slice(0, 10)))
  })

  it('of a word or a number is another one for another one', () => {
    const words = Array.from({ length: 5_000 }, (_, n) => `name${n}`)
    expect(new Set(words.map(pseudonyms.words)).size).toBe(words.length)
    expect(pseudonyms.words('POST /V2/Attendance/AttendanceRecords HTTP/1.1')).toBe('POST /V2/Attendance/AttendanceRecords HTTP/1.1') // prettier-ignore
    // Names that a client escapes, as each does beyond ASCII, outside of quotes.
    for (const name of ['%D0%9F%D0%B5%D1%82%D1%80', '%50eter', 'Pete%72', '%25D0%259F', '%50', 'Zo%C3%AB'])
      expect(pseudonyms.words(`%24search=%22${name}%22`)).toMatch(/^%24search=%22w[0-9a-f]{12}%22$/)
    for (const [lexeme, form] of [
      ['-8151623421.50', /^-9\d{9}\.00$/],
      ['-2147483648', /^-1\d{9}$/],
      ['0', /^0$/],
      ['7', /^[1-9]$/],
    ] as const)
      // prettier-ignore
      expect(pseudonyms.number(lexeme)).toMatch(form)
  })

  it('of a part is as long as its Content-Length says, and names that the service has stay', () => {
    const { body } = markedExchange().reply
    const mapped = pseudonymise(pseudonyms, markedExchange())
    const [, length = '', part = ''] =
      /Content-Length: (\d+)[^]*?\r\n\r\n(\{[^]*\})\r\n--/.exec(mapped?.reply.body.toString() ?? '') ?? []
    expect([part.length, part.length === body.length]).toEqual([Number(length), false])
    expect(Object.keys(JSON.parse(part) as object)).toEqual(
      expect.arrayContaining(['@odata.context', 'ExternalID', 'Learner', 'RecordedOn', 'Comment']),
    )
  })
})
