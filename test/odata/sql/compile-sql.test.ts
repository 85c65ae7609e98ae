import { DatabaseSync } from 'node:sqlite'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { checkExpression, checkFilter } from '../../../src/odata/check/check-expression.ts'
import { compileComparator, compilePredicate } from '../../../src/odata/evaluate/compile-predicate.ts'
import { parseFilter } from '../../../src/odata/parse/parse-filter.ts'
import { compileSqlFilter, compileSqlOrder } from '../../../src/odata/sql/compile-sql.ts'
import type { SqlMapping } from '../../../src/odata/sql/sql-mapping.ts'
import { parseDate, parseDuration, parseInstant, parseTimeOfDay } from '../../../src/odata/typed/scalar.ts'
import { sampleIndex } from '../sample-model.ts'
import { condition, number, text, thing, type Thing } from './typed-arbitraries.ts'
import { runs } from '../../support/long-run.ts'

const columns = [
  'ID',
  'Code',
  'Name',
  'Size',
  'Weight',
  'Open',
  'Kind',
  'Created',
  'Day',
  'At',
  'Lasts',
  'Owner',
  'OwnerID',
]

const mapping: SqlMapping = {
  column(path) {
    const name = path.join('/')
    if (name === 'Owner/ExternalID') return 't."OwnerID"'
    return columns.includes(name) ? `t."${name}"` : undefined
  },
}

/** Runs with a table of things, stored as `SqlMapping` asks. */
function withTable<T>(things: readonly Thing[], run: (database: DatabaseSync) => T): T {
  const database = new DatabaseSync(':memory:')
  try {
    database.exec(`CREATE TABLE things (n INTEGER, ${columns.map((name) => `"${name}"`).join(', ')})`)
    const insert = database.prepare(
      `INSERT INTO things VALUES (${Array(columns.length + 1)
        .fill('?')
        .join(', ')})`,
    )
    const asText = (value: unknown): string | null => (typeof value === 'string' ? value : null)
    const asNumber = (value: unknown): number | null => (typeof value === 'number' ? value : null)
    const parsed = (value: unknown, parse: (raw: string) => number | undefined): number | null =>
      typeof value === 'string' ? (parse(value) ?? null) : null
    for (const [n, row] of things.entries()) {
      const owner = row['Owner'] as { readonly ExternalID: string | null } | null | undefined
      insert.run(
        n,
        asText(row['ID']),
        asText(row['Code']),
        asText(row['Name']),
        asNumber(row['Size']),
        asNumber(row['Weight']),
        typeof row['Open'] === 'boolean' ? Number(row['Open']) : null,
        asText(row['Kind']),
        parsed(row['Created'], (raw) => parseInstant(raw)?.ms),
        parsed(row['Day'], parseDate),
        parsed(row['At'], parseTimeOfDay),
        parsed(row['Lasts'], parseDuration),
        owner ? 1 : null,
        owner?.ExternalID?.toLowerCase() ?? null,
      )
    }
    return run(database)
  } finally {
    database.close()
  }
}

const check = (filter: string) => checkFilter(parseFilter(filter), 'Sample.Thing', sampleIndex)

describe('compileSqlFilter', () => {
  test('selects what the predicate selects, with what it hands back', () => {
    fc.assert(
      fc.property(condition, fc.array(thing, { minLength: 1, maxLength: 5 }), (filter, things) => {
        const typed = check(filter)
        const { where, rest } = compileSqlFilter(typed, mapping, sampleIndex)
        const restHolds = rest === undefined ? () => true : compilePredicate(rest, sampleIndex)
        const bySql = withTable(things, (database) =>
          database
            .prepare(`SELECT n FROM things t WHERE ${where.sql} ORDER BY n`)
            .all(...where.parameters)
            .map((row) => Number(row['n']))
            .filter((n) => restHolds(things[n])),
        )
        const holds = compilePredicate(typed, sampleIndex)
        expect(bySql).toEqual([...things.keys()].filter((n) => holds(things[n])))
      }),
      { numRuns: runs(700, 10_000) },
    )
  })
})

describe('the SQL of a filter', () => {
  const sql = (filter: string) => compileSqlFilter(check(filter), mapping, sampleIndex)

  test.each([
    ["Name eq 'x'';--'", '(t."Name" = ?)', ["x';--"]],
    ['Name eq null and Open', '((t."Name" IS NULL) AND t."Open")', []],
    ['Name eq Code and Name ne Code', '((t."Name" = t."Code") AND (t."Name" IS NOT t."Code"))', []],
    ['not (Size gt 1)', '(NOT ifnull((t."Size" > ?), 0))', [1]],
    ['Size gt 1 or Size le 2', '((t."Size" > ?) OR (t."Size" <= ?))', [1, 2]],
    ["Code in ('a','b')", '(t."Code" IN (?, ?))', ['a', 'b']],
    ['Created ge 1970-01-01T01:00:01+01:00', '(t."Created" >= ?)', [1000]],
    ["Kind eq 'Fancy'", '(t."Kind" = ?)', ['Fancy']],
    ['Owner/ExternalID ne null', '(t."OwnerID" IS NOT NULL)', []],
    ["startswith(Code,'a')", '(substr(t."Code", 1, length(?)) = ?)', ['a', 'a']],
  ])('%s', (filter, text, parameters) => {
    expect(sql(filter)).toEqual({ where: { sql: text, parameters } })
  })

  test('hands back one operand of a top-level and at a time', () => {
    const { where, rest } = sql("Size gt 1 and tolower(Name) eq 'a' and Open and Tags/any()")
    expect(where.sql).toBe('((t."Size" > ?) AND t."Open")')
    expect(rest).toMatchObject({ kind: 'and', operands: [{ kind: 'compare' }, { kind: 'any' }] })
    expect(sql("Size gt 1 and tolower(Name) eq 'a'").rest).toMatchObject({ kind: 'compare' })
  })

  test.each([
    ["tolower(Name) eq 'a' or Size gt 1"],
    ["Marks eq 'Red'"],
    ["Kind gt 'Plain'"],
    ["Hash eq binary'AQ'"],
    ["Name eq '\ud800'"],
    ["Name eq 'a\0b'"],
    ['Size lt INF'],
    ['Size in [Weight,1]'],
    ['substring(Name,Size) eq Code'],
    ['hour(Created add Lasts) eq 1'],
  ])('leaves to the predicate what SQLite cannot decide alike: %j', (filter) => {
    expect(sql(filter)).toMatchObject({ where: { sql: '1', parameters: [] }, rest: check(filter) })
  })

  test('stays within the bounds of SQLite for thousands of alternatives', () => {
    const many = Array.from({ length: 4000 }, (_, n) => `Size eq ${n}`).join(' or ')
    const { where, rest } = sql(many)
    expect(rest).toBeUndefined()
    const count = withTable([{ Size: 3999 }], (database) =>
      database.prepare(`SELECT count(*) AS n FROM things t WHERE ${where.sql}`).get(...where.parameters),
    )
    expect(count?.['n']).toBe(1)
  })

  test('gives up on a tree that SQLite would refuse', () => {
    const deep = `${'-('.repeat(90)}Size${')'.repeat(90)}`
    const wide = [deep, deep, deep].reduce((inner, next) => inner.replace('Size', `(${next})`))
    const filter = checkFilter(parseFilter(`${wide} eq 1`, { maxDepth: 1000 }), 'Sample.Thing', sampleIndex)
    expect(compileSqlFilter(filter, mapping, sampleIndex).where.sql).toBe('1')
  })
})

describe('compileSqlOrder', () => {
  test('sorts as the comparator does', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.oneof(number, text), fc.constantFrom('asc' as const, 'desc' as const)), {
          minLength: 1,
          maxLength: 2,
        }),
        fc.array(thing, { minLength: 2, maxLength: 6 }),
        (keys, things) => {
          const items = keys.map(([key, direction]) => ({
            expression: checkExpression(parseFilter(key), 'Sample.Thing', sampleIndex),
            direction,
          }))
          const order = compileSqlOrder(items, mapping, sampleIndex)
          fc.pre(order !== undefined)
          const bySql = withTable(things, (database) =>
            database
              .prepare(`SELECT n FROM things t ORDER BY ${order.sql}, n`)
              .all(...order.parameters)
              .map((row) => Number(row['n'])),
          )
          const compare = compileComparator(items, sampleIndex)
          const sorted = [...things.keys()].sort((left, right) => compare(things[left], things[right]))
          expect(bySql).toEqual(sorted)
        },
      ),
      { numRuns: runs(400, 5_000) },
    )
  })
})
