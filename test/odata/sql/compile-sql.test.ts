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
      const owner = row['Owner'] as { readonly ExternalID: string | null } | null
      insert.run(
        n,
        asText(row['ID']),
        asText(row['Code']),
        asText(row['Name']),
        asNumber(row['Size']),
        asNumber(row['Weight']),
        row['Open'] === null ? null : Number(row['Open']),
        asText(row['Kind']),
        parsed(row['Created'], (raw) => parseInstant(raw)?.ms),
        parsed(row['Day'], parseDate),
        parsed(row['At'], parseTimeOfDay),
        parsed(row['Lasts'], parseDuration),
        owner === null ? null : 1,
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
      { numRuns: 2000 },
    )
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
      { numRuns: 1000 },
    )
  })
})
