import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'

import { parseFilter, parseQuery } from '../../src/odata/parse/parse-query.ts'
import { QueryError } from '../../src/odata/query-error.ts'

interface AbnfCase {
  readonly rule: string
  readonly name: string
  readonly input: string
  /** Index of the character where an invalid input becomes invalid. Absent for a valid input. */
  readonly failAt?: number
}

const file = new URL('data/odata-abnf-filter-cases.json', import.meta.url)
const { cases } = JSON.parse(readFileSync(file, 'utf8')) as { readonly cases: readonly AbnfCase[] }

/** Cases whose outcome differs from the OASIS file, each with its reason. */
const exceptions: Readonly<
  Record<string, { readonly reason: string; readonly outcome: number | 'accepted' }>
> = {
  'commonExpr geo.distance(Supplier/Location,Product/Location)': {
    reason: 'spatial functions are left out: no property of the service is spatial',
    outcome: 13,
  },
  'commonExpr geo.length(Line)': { reason: 'as above', outcome: 11 },
  "filter $filter=geo.intersects(geometry'SRID=0;Point(142.1 64.1)',geometry'SRID=0;Polygon((1 1,1 1),(1 1,2 2,3 3,1 1))')":
    { reason: 'as above, with spatial literals', outcome: 36 },
  'filter $filter= true': {
    reason: 'spaces around an option value are tolerated: clients send them and nothing else can be meant',
    outcome: 'accepted',
  },
  'boolCommonExpr Products/all()': {
    reason:
      'refused at the parenthesis that comes in place of the variable, one character before the grammar gives up',
    outcome: 13,
  },
}

const numbers = ['Edm.Int32', 'Edm.Int64', 'Edm.Decimal', 'Edm.Double']

/** The EDM types that the parser may give to the input of a rule for literals. */
const literalTypes: Readonly<Record<string, readonly string[]>> = {
  boolean: ['Edm.Boolean'],
  booleanValue: ['Edm.Boolean'],
  guid: ['Edm.Guid'],
  date: ['Edm.Date'],
  dateTimeOffsetValue: ['Edm.DateTimeOffset'],
  timeOfDayValue: ['Edm.TimeOfDay'],
  decimalValue: numbers,
  durationValue: ['Edm.Duration'],
  stringLiteral: ['Edm.String'],
  primitiveLiteral: [...numbers, 'Edm.String'],
}

const optionRules = ['filter', 'orderby', 'orderBy', 'expand', 'select', 'queryOptions', 'systemQueryOption']

/** The text that must surround the input of a rule to make it an expression. */
const frames: Readonly<Record<string, readonly [before: string, after: string]>> = {
  anyExpr: ['Items/', ''],
  durationValue: ["duration'", "'"],
}

function readCase({ rule, input }: AbnfCase): void {
  if (optionRules.includes(rule)) {
    // A plus sign in the cases stands for itself (RFC 3986), but parseQuery would decode it as a space.
    parseQuery(input.replaceAll('+', '%2B'))
    return
  }
  const [before, after] = frames[rule] ?? ['', '']
  // The value rules describe payloads, which are not percent-encoded.
  const text = rule.endsWith('Value') ? input : decodeURIComponent(input)
  const expression = parseFilter(before + text + after)
  const types = literalTypes[rule]
  if (types === undefined) return
  if (expression.kind !== 'literal' || !types.includes(expression.type))
    throw new QueryError('Another type', 0)
}

/** Returns `accepted`, or the index of the input character at which the parser failed. */
function outcomeOf(abnfCase: AbnfCase): number | 'accepted' {
  try {
    readCase(abnfCase)
    return 'accepted'
  } catch (error) {
    if (!(error instanceof QueryError)) throw error
    const start = error.option === undefined ? 0 : abnfCase.input.indexOf('=') + 1
    return error.position + start - (frames[abnfCase.rule]?.[0].length ?? 0)
  }
}

const keyOf = ({ rule, input }: AbnfCase): string => `${rule} ${input}`

describe('the parser, on the OASIS file of OData ABNF 4.01 test cases', () => {
  const asStated = cases.filter((abnfCase) => !(keyOf(abnfCase) in exceptions))

  test('agrees with the file on at least 95 % of the cases', () => {
    expect(asStated.length / cases.length).toBeGreaterThan(0.95)
  })

  test.each(asStated.map((abnfCase) => [keyOf(abnfCase), abnfCase] as const))(
    'agrees with the file on the case: %s',
    (_key, abnfCase) => {
      const outcome = outcomeOf(abnfCase)
      if (abnfCase.failAt === undefined) expect(outcome).toBe('accepted')
      // A literal parsed with the wrong type is refused as a whole, so only expressions have a position.
      else if (abnfCase.rule in literalTypes) expect(outcome).not.toBe('accepted')
      else expect(outcome).toBe(abnfCase.failAt)
    },
  )

  test.each(Object.entries(exceptions))(
    'still deviates from the file on the documented case: %s',
    (key, { outcome }) => {
      const known = cases.filter((abnfCase) => keyOf(abnfCase) === key)
      expect(known.map(outcomeOf)).toEqual([outcome])
    },
  )
})
