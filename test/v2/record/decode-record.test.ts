import fc from 'fast-check'
import { describe, expect, it } from 'vitest'

import { noBatchLimits } from '../../../src/v2/limits.ts'
import {
  decodeRecord,
  FLAT_TYPE,
  type FlatRecord,
  type RecordResult,
} from '../../../src/v2/record/decode-record.ts'

const LEARNER = '2b6f0cc9-04d6-4a8b-9c3e-5f1e7a9d2c41'
const EVENT = 'A7C1E2D3-5B4F-4E6A-8D7C-9B0A1F2E3D4C'
const CODE = '9d8e7f6a-1b2c-4d3e-8f9a-0b1c2d3e4f5a'
const DIGITS = LEARNER.replaceAll('-', '')

const written = {
  Present: true,
  Absent: false,
  Learner: LEARNER,
  AttendableEvent: EVENT,
  SchoolAttendanceCode: CODE,
}
const record: FlatRecord = { ...written, MinutesLate: undefined, Comment: undefined, unmapped: undefined }

const json = (members: object): string => JSON.stringify({ ...written, ...members })
const withText = (member: string): string => JSON.stringify(written).replace('}', `,${member}}`)

const field = (name: string, rule: string): object => ({
  code: 'ADP_FIELD',
  message: expect.stringContaining(`${name} ${rule}. `) as unknown,
})
const syntax = (what: string, position: number): object => ({
  code: 'ADP_JSON',
  message: expect.stringContaining(`: ${what} (character ${position}). `) as unknown,
})

describe('decodeRecord', () => {
  const accepted: [what: string, text: string, more: Partial<FlatRecord>][] = [
    ['the write form of service.md 4.2', json({ '@odata.type': FLAT_TYPE, MinutesLate: null, Comment: 'x' }), { MinutesLate: null, Comment: 'x' }],
    ['a record without optional members', json({}), {}],
    ['a record that is both present and absent', json({ Absent: true }), { Absent: true }],
    ['the largest int32', json({ MinutesLate: 2147483647 }), { MinutesLate: 2147483647 }],
    ['the smallest int32', json({ MinutesLate: -2147483648 }), { MinutesLate: -2147483648 }],
    ['minus zero as 0', withText('"MinutesLate":-0'), { MinutesLate: 0 }],
    ['a null comment', json({ Comment: null }), { Comment: null }],
    ['an empty comment', json({ Comment: '' }), { Comment: '' }],
    ['escaped member names', json({}).replace('"Learner"', '"\\u004cearner"'), {}],
    ['pretty-printed JSON after a byte order mark (batch-wire F20)', `\ufeff${JSON.stringify(written, null, 2).replaceAll('\n', '\r\n\r\n')}\r\n`, {}],
    ['single quotes (batch-wire F30)', json({ Comment: 'x' }).replaceAll('"', "'"), { Comment: 'x' }],
    ['unmapped members with their original text', withText('"Z":1.50,"a":{"b":[1]},"@odata.type":"#Other","":null'), {
      unmapped: [{ name: 'Z', raw: '1.50' }, { name: 'a', raw: '{"b":[1]}' }, { name: '@odata.type', raw: '"#Other"' }, { name: '', raw: 'null' }],
    }],
    ['a name that differs in letter case as unmapped', json({ learner: 1 }), { unmapped: [{ name: 'learner', raw: '1' }] }],
  ] // prettier-ignore
  it.each(accepted)('accepts %s (batch-wire 4)', (_, text, more) => {
    expect(decodeRecord(text)).toEqual({ record: { ...record, ...more }, faults: undefined })
  })

  const refused: [what: string, text: string, faults: object[]][] = [
    ['a missing member', JSON.stringify({ ...written, Learner: undefined }), [field('Learner', 'is required')]],
    ['an empty object', ' {} ', ['Present', 'Absent', 'Learner', 'AttendableEvent', 'SchoolAttendanceCode'].map((name) => field(name, 'is required'))],
    ['several faults together', json({ Present: 1, Learner: 'x', MinutesLate: 'y', Comment: [] }), [
      field('Present', 'must be true or false'), field('Learner', 'must be a guid'), field('MinutesLate', 'must be an int32 or null'), field('Comment', 'must be a string or null'),
    ]],
    ['a flag that is null', json({ Absent: null }), [field('Absent', 'must be true or false')]],
    ['a flag that is a number', json({ Absent: 0 }), [field('Absent', 'must be true or false')]],
    ['a flag as the text of a number', json({ Absent: '1' }), [field('Absent', 'must be true or false')]],
    ['an empty flag', json({ Absent: '' }), [field('Absent', 'must be true or false')]],
    ['an empty guid', json({ Learner: ' ' }), [field('Learner', 'must be a guid')]],
    ['a guid in brackets', json({ Learner: `[${LEARNER}]` }), [field('Learner', 'must be a guid')]],
    ['a guid in brackets that do not match', json({ Learner: `{${LEARNER})` }), [field('Learner', 'must be a guid')]],
    ['a guid in two braces', json({ Learner: `{{${LEARNER}}}` }), [field('Learner', 'must be a guid')]],
    ['a guid in braces without hyphens', json({ Learner: `{${DIGITS}}` }), [field('Learner', 'must be a guid')]],
    ['a guid with spaces inside its braces', json({ Learner: `{ ${LEARNER} }` }), [field('Learner', 'must be a guid')]],
    ['a guid with misplaced hyphens', json({ Learner: LEARNER.replace('0c', '0-c') }), [field('Learner', 'must be a guid')]],
    ['a guid with a digit too few', json({ Learner: DIGITS.slice(1) }), [field('Learner', 'must be a guid')]],
    ['minutes as an empty text', json({ MinutesLate: '' }), [field('MinutesLate', 'must be an int32 or null')]],
    ['minutes as the text "null"', json({ MinutesLate: 'null' }), [field('MinutesLate', 'must be an int32 or null')]],
    ['minutes as the text of a fraction', json({ MinutesLate: '5.0' }), [field('MinutesLate', 'must be an int32 or null')]],
    ['minutes as the text of an int64', json({ MinutesLate: '2147483648' }), [field('MinutesLate', 'must be an int32 or null')]],
    ['minutes as hexadecimal text', json({ MinutesLate: '0x5' }), [field('MinutesLate', 'must be an int32 or null')]],
    ['minutes as text with an exponent', json({ MinutesLate: '5e0' }), [field('MinutesLate', 'must be an int32 or null')]],
    ['a null guid', json({ AttendableEvent: null }), [field('AttendableEvent', 'must be a guid')]],
    ['minutes beyond int32', json({ MinutesLate: 2147483648 }), [field('MinutesLate', 'must be an int32 or null')]],
    ['minutes beyond twice the range of int32', json({ MinutesLate: 4294967297 }), [field('MinutesLate', 'must be an int32 or null')]],
    ['a fraction of minutes', withText('"MinutesLate":5.0'), [field('MinutesLate', 'must be an int32 or null')]],
    ['minutes with an exponent', withText('"MinutesLate":5e0'), [field('MinutesLate', 'must be an int32 or null')]],
    ['an empty body (batch-wire F23)', ' \r\n', [syntax('the body is empty', 3)]],
    ['an array (batch-wire F23)', '[]', [syntax('the body is not an object', 0)]],
    ['a string (batch-wire F23)', '"x"', [syntax('the body is not an object', 0)]],
    ['text after the object (batch-wire F23)', '{}x', [syntax('text follows the object', 2)]],
    ['an unclosed object (batch-wire F23)', '{"a":1', [syntax('a comma or the end of the object is expected', 6)]],
    ['a trailing comma (batch-wire F23)', '{"a":1,}', [syntax('a string is expected', 7)]],
    ['a member without a colon (batch-wire F23)', '{"Learner"}', [syntax('a colon is expected', 10)]],
    ['a member without a value (batch-wire F23)', '{"MinutesLate":}', [syntax('a value is expected', 15)]],
    ['a truncated guid (batch-wire F23)', '{"Learner":"2b6f', [syntax('a string is not closed', 11)]],
    ['a comment with a raw line end (batch-wire F23)', '{"Comment":"a\nb"}', [syntax('a string has a control character', 13)]],
    ['a flag that is a bare word (batch-wire F23)', '{"Present":yes}', [syntax('a value is expected', 11)]],
    ['a repeated name', withText('"Present":true'), [syntax('a name occurs twice', withText('"Present":true').lastIndexOf(':'))]],
    ['a repeated name that is escaped differently', withText('"\\u0050resent":true'), [syntax('a name occurs twice', withText('"\\u0050resent":true').lastIndexOf(':'))]],
    ['a repeated name of an unmapped member', '{"a":1,"b":2,"\\u0061":1}', [syntax('a name occurs twice', 21)]],
    ['a repeated @odata.type', `{"@odata.type":"${FLAT_TYPE}","@odata.type":1}`, [syntax('a name occurs twice', 79)]],
  ] // prettier-ignore
  it.each(refused)('refuses %s (batch-wire 4)', (_, text, faults) => {
    expect(decodeRecord(text)).toEqual({ record: undefined, faults })
  })

  // V2's parser reads text with .NET's Guid, Boolean.Parse and Int32.Parse.
  const converted: [what: string, text: string, more: Partial<FlatRecord>][] = [
    ['flags as text in any letter case', json({ Present: 'TRUE', Absent: ' false ' }), { converted: 2 }],
    ['minutes as text', json({ MinutesLate: '12' }), { MinutesLate: 12, converted: 1 }],
    ['minutes as text with a sign, zeros and spaces', json({ MinutesLate: ' +007 ' }), { MinutesLate: 7, converted: 1 }],
    ['the smallest int32 as text', json({ MinutesLate: '-2147483648' }), { MinutesLate: -2147483648, converted: 1 }],
    ['a guid in braces', json({ Learner: `{${LEARNER}}` }), { converted: 1 }],
    ['a guid in parentheses', json({ Learner: `(${LEARNER})` }), { converted: 1 }],
    ['a guid without hyphens', json({ Learner: DIGITS }), { converted: 1 }],
    ['guids with surrounding white space', json({ Learner: `\t${LEARNER} `, AttendableEvent: ` {${EVENT}} `, SchoolAttendanceCode: `${CODE}\n` }), { converted: 3 }],
    ['a guid without hyphens in capitals', json({ AttendableEvent: EVENT.replaceAll('-', '') }), { converted: 1 }],
  ] // prettier-ignore
  it.each(converted)('converts %s, and counts the conversion (batch-wire 4)', (_, text, more) => {
    expect(decodeRecord(text)).toEqual({ record: { ...record, ...more }, faults: undefined })
  })

  it('refuses a long text of spaces in linear time', () => {
    const text = `${' '.repeat(1_000_000)}x`
    const { faults } = decodeRecord(json({ Learner: text, Present: text, MinutesLate: text }), noBatchLimits)
    expect(faults).toHaveLength(3)
  })

  it('never repeats a value of the record in a fault', () => {
    const { faults } = decodeRecord(
      json({ Present: 'secret', Learner: 'secret', MinutesLate: 'secret', Comment: 7 }),
    )
    expect(JSON.stringify(faults)).not.toContain('secret')
  })

  it('reads 200,000 unmapped members in linear time', () => {
    const members = Array.from({ length: 200_000 }, (_, n) => `"a${n}":${n}`)
    const read = (texts: readonly string[]): RecordResult =>
      decodeRecord(withText(texts.join(',')), noBatchLimits)
    expect(read(members).record?.unmapped).toHaveLength(200_000)
    expect(read([...members, '"a7":0']).faults).toMatchObject([{ code: 'ADP_JSON' }])
  })

  it('decodes random records with any quotes, escapes and white space', () => {
    const guid = fc.uuid().chain((id) => fc.constantFrom(id, id.toUpperCase()))
    const unmapped = fc.dictionary(
      fc.string({ minLength: 1 }).map((name) => `x${name}`),
      fc.jsonValue(),
      { maxKeys: 3 },
    )
    const arbitrary = fc.record({
      Present: fc.boolean(),
      Absent: fc.boolean(),
      Learner: guid,
      AttendableEvent: guid,
      SchoolAttendanceCode: guid,
      MinutesLate: fc.option(fc.integer({ min: -2147483648, max: 2147483647 }), { nil: null }),
      Comment: fc.option(fc.string({ unit: 'binary' }), { nil: null }),
      unmapped,
    })
    fc.assert(
      fc.property(
        arbitrary,
        fc.constantFrom<Style>('plain', 'pretty', 'single', 'escaped'),
        (flat, style) => {
          const { unmapped: more, ...members } = flat
          const names = Object.keys(more)
          const decoded = decodeRecord(write({ ...members, ...more }, style)).record
          const expected = names.map((name) => ({ name, raw: write(more[name], style) }))
          expect({ ...decoded, unmapped: decoded?.unmapped?.map(({ name }) => name) }).toEqual({
            ...members,
            unmapped: names.length === 0 ? undefined : names,
          })
          if (style !== 'pretty') expect(decoded?.unmapped ?? []).toEqual(expected)
        },
      ),
    )
  })
})

type Style = 'plain' | 'pretty' | 'single' | 'escaped'

/** Returns JSON text in one of the styles that clients use. */
function write(value: unknown, style: Style): string {
  const text = JSON.stringify(value, null, style === 'pretty' ? 2 : undefined)
  if (style === 'escaped') return text.replaceAll(/[^\u0000-\u007e]/g, escape)
  if (style !== 'single') return text
  return text.replaceAll(
    /"(?:[^"\\]|\\.)*"/gs,
    (string) => `'${string.slice(1, -1).replaceAll("'", "\\'").replaceAll('\\"', '"')}'`,
  )
}

function escape(char: string): string {
  return `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`
}
