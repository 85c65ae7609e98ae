import type { EnumLiteral, Literal, LiteralType } from '../ast.ts'
import type { Cursor } from './cursor.ts'

// The patterns of literals (OData ABNF 7). No two alternatives of a pattern match the same text, so matching takes linear time.
const guidPattern = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/iy
const datePattern = /-?(?:0\d{3}|[1-9]\d{3,})-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])/y
const timePattern = /(?:[01]\d|2[0-3]):[0-5]\d(?::(?:[0-5]\d|60)(?:\.\d{1,12})?)?/y
// A space stands for the "+" of an offset, because form encoding turns "+" into a space. No valid query has a space and then a time in this
// place.
const offsetPattern = /[Zz]|[+\- ](?:[01]\d|2[0-3]):[0-5]\d/y
const numberPattern = /[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/y
const negativeInfinity = /-INF(?!\w)/y
const durationPattern = /'-?P(?=\d|T\d)(?:\d+D)?(?:T(?=\d)(?:\d+H)?(?:\d+M)?(?:\d+(?:\.\d+)?S)?)?'/iy
const binaryPattern = /'(?:[\w-]{4})*(?:[\w-]{2}[AEIMQUYcgkosw048]=?|[\w-][AQgw](?:==)?)?'/y
const enumMember = /[\p{L}\p{Nl}_][\p{L}\p{Nl}\p{Nd}\p{Mn}\p{Mc}\p{Pc}\p{Cf}]*|[+-]?\d{1,19}/uy

const hexLetter = /[a-f]/i
const digit = /\d/

function numberType(text: string): LiteralType {
  if (/[eE]/.test(text)) return 'Edm.Double'
  if (text.includes('.')) return 'Edm.Decimal'
  if (text.length < 10) return 'Edm.Int32'
  if (text.length > 20) return 'Edm.Decimal'
  const value = BigInt(text)
  if (BigInt.asIntN(32, value) === value) return 'Edm.Int32'
  return BigInt.asIntN(64, value) === value ? 'Edm.Int64' : 'Edm.Decimal'
}

function parseString(cursor: Cursor, position: number): Literal {
  let end = cursor.text.indexOf("'", position + 1)
  while (end >= 0 && cursor.text[end + 1] === "'") end = cursor.text.indexOf("'", end + 2)
  if (end < 0) cursor.fail('A string has no closing apostrophe', position)
  cursor.position = end + 1
  const value = cursor.text.slice(position + 1, end).replaceAll("''", "'")
  return { kind: 'literal', type: 'Edm.String', value, position }
}

/** Parses a literal that starts with a digit or a sign: a guid, date, date-time, time of day or number. */
function parseNumeric(cursor: Cursor, position: number): Literal | undefined {
  const literal = (type: LiteralType, value: string): Literal => ({ kind: 'literal', type, value, position })
  const guid = cursor.match(guidPattern)
  if (guid !== undefined) return literal('Edm.Guid', guid)
  if (cursor.match(negativeInfinity) !== undefined) return literal('Edm.Double', '-INF')
  const date = cursor.match(datePattern)
  if (date !== undefined) return parseDateTime(cursor, date, position)
  const time = cursor.match(timePattern)
  if (time !== undefined) return literal('Edm.TimeOfDay', time)
  const number = cursor.match(numberPattern)?.replace(/^\+/, '')
  return number === undefined ? undefined : literal(numberType(number), number)
}

function parseDateTime(cursor: Cursor, date: string, position: number): Literal {
  if (!cursor.eat('T') && !cursor.eat('t'))
    return { kind: 'literal', type: 'Edm.Date', value: date, position }
  const time = cursor.match(timePattern) ?? cursor.fail('Expected a time of day after "T"')
  const offset = cursor.match(offsetPattern) ?? cursor.fail('Expected "Z" or an offset such as "+01:00"')
  const value = `${date}T${time}${offset.toUpperCase().replace(' ', '+')}`
  return { kind: 'literal', type: 'Edm.DateTimeOffset', value, position }
}

function parseEnumMembers(cursor: Cursor): string[] {
  const members: string[] = []
  cursor.expect("'")
  do
    members.push(
      cursor.match(enumMember) ?? cursor.fail('Expected the name or number of an enumeration member'),
    )
  while (cursor.eat(','))
  cursor.expect("'")
  return members
}

function parsePrefixed(cursor: Cursor, name: string, position: number): Literal | EnumLiteral {
  const prefix = name.toLowerCase()
  if (prefix === 'duration') {
    const quoted = cursor.match(durationPattern) ?? cursor.fail('Expected a duration such as P1DT2H')
    return { kind: 'literal', type: 'Edm.Duration', value: quoted.slice(1, -1).toUpperCase(), position }
  }
  if (prefix === 'binary') {
    const quoted = cursor.match(binaryPattern) ?? cursor.fail('Expected base64url text')
    return { kind: 'literal', type: 'Edm.Binary', value: quoted.slice(1, -1).replaceAll('=', ''), position }
  }
  return { kind: 'enum', typeName: name, members: parseEnumMembers(cursor), position }
}

/** Words that are literals (OData ABNF 7). `null`, `INF` and `NaN` are case-sensitive. `true` and `false` are not. */
const wordTypes: ReadonlyMap<string, LiteralType> = new Map<string, LiteralType>([
  ['null', 'null'],
  ['true', 'Edm.Boolean'],
  ['false', 'Edm.Boolean'],
  ['INF', 'Edm.Double'],
  ['NaN', 'Edm.Double'],
])

/**
 * Parses a literal that begins with a word, such as `true`, `null`, `INF`, `duration'…'` or `NS.Type'Member'`. The caller has already
 * consumed the word `name`. Consumes nothing more and returns `undefined` if there is no such literal.
 */
export function parseNamedLiteral(
  cursor: Cursor,
  name: string,
  position: number,
): Literal | EnumLiteral | undefined {
  if (cursor.sees("'")) return parsePrefixed(cursor, name, position)
  if (name.length > 5) return undefined
  const type = wordTypes.get(name)
  if (type !== undefined) return { kind: 'literal', type, value: name, position }
  const value = name.toLowerCase()
  if (value !== 'true' && value !== 'false') return undefined
  return { kind: 'literal', type: 'Edm.Boolean', value, position }
}

/** Parses a string, a number, a date, a time or a guid. Consumes nothing and returns `undefined` if no such literal follows. */
export function parsePlainLiteral(cursor: Cursor): Literal | undefined {
  const { position } = cursor
  const first = cursor.text.charAt(position)
  if (first === "'") return parseString(cursor, position)
  if (digit.test(first) || first === '-' || first === '+') return parseNumeric(cursor, position)
  if (!hexLetter.test(first) || cursor.text.charAt(position + 8) !== '-') return undefined
  const guid = cursor.match(guidPattern)
  return guid === undefined ? undefined : { kind: 'literal', type: 'Edm.Guid', value: guid, position }
}

export function parseLiteral(cursor: Cursor): Literal | EnumLiteral {
  const plain = parsePlainLiteral(cursor)
  if (plain !== undefined) return plain
  const { position } = cursor
  const name = cursor.qualifiedName('a literal')
  return parseNamedLiteral(cursor, name, position) ?? cursor.fail('Expected a literal', position)
}
