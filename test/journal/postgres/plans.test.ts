import type { Pool } from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { openJournal } from '../../../src/journal/index.ts'
import { connectPostgres } from '../../../src/journal/postgres/connections.ts'
import { createStatements } from '../../../src/journal/sql.ts'
import { missingPostgres, startPostgres, type TestPostgres } from '../../support/start-postgres.ts'

interface PlanNode {
  readonly 'Node Type': string
  readonly 'Relation Name'?: string
  readonly 'Index Name'?: string
  readonly 'Index Cond'?: string
  readonly 'Join Filter'?: string
  readonly Plans?: readonly PlanNode[]
}

/** The first column of each index. A search by index has a condition on this column. */
const firstColumns: Readonly<Record<string, string>> = {
  journal_records_pkey: 'batch',
  journal_records_active: 'key',
  journal_batches_pkey: 'id',
  journal_batches_ids: 'ids',
  journal_payloads_pkey: 'batch',
  journal_credentials_pkey: 'batch',
  journal_answers_batch: 'batch',
}

/** Tables that always have only a few rows. */
const smallTables = new Set(['journal_commits', 'journal_instances', 'journal_meta', 'journal_ledger'])

/** Indexes with only a few rows: indexes of small tables, and the index of the batches with open records. */
const smallIndexes = /^journal_(?:commits|instances|meta)_|^journal_batches_open$/

/** Returns the nodes of a plan that read more rows with every batch that the journal stores. */
function findPasses(node: PlanNode): readonly string[] {
  const { 'Node Type': type, 'Relation Name': table, 'Index Name': index, 'Index Cond': condition } = node
  const inner = (node.Plans ?? []).flatMap(findPasses)
  // Reports the node, because a join filter compares each row of one input with each row of the other input.
  if (node['Join Filter'] !== undefined) return [...inner, `${type} with ${node['Join Filter']}`]
  const isSmall = table !== undefined && smallTables.has(table)
  if (type === 'Seq Scan' && !isSmall) return [...inner, `${type} of ${String(table)}`]
  if (index === undefined || isSmall || smallIndexes.test(index)) return inner
  const first = firstColumns[index]
  const isSearch = first !== undefined && new RegExp(`\\(${first} = `).test(condition ?? '')
  return isSearch ? inner : [...inner, `${type} of ${index} by ${condition ?? 'nothing'}`]
}

describe.skipIf(missingPostgres() !== undefined)('the query plan of PostgreSQL for empty tables', () => {
  let postgres: TestPostgres
  let pool: Pool
  beforeAll(async () => {
    postgres = await startPostgres()
    const url = await postgres.createDatabase()
    await (await openJournal({ url })).close()
    pool = connectPostgres(url, { timeoutMs: 20_000 })
  })
  afterAll(async () => {
    await pool.end()
    await postgres.close()
  })

  test.each(Object.entries(createStatements('postgres')))(
    'contains index searches only, and no scan of a whole table, for the statement "%s"',
    async (name, text) => {
      const client = await pool.connect()
      try {
        await client.query('set plan_cache_mode = force_generic_plan')
        await client.query(`prepare "${name}" as ${text}`)
        const parameters = Math.max(0, ...[...text.matchAll(/\$(\d+)/g)].map(([, number]) => Number(number)))
        const values = parameters === 0 ? '' : `(${Array.from({ length: parameters }, () => 'null').join()})`
        const { rows } = await client.query<{ 'QUERY PLAN': readonly { Plan: PlanNode }[] }>(
          `explain (format json) execute "${name}"${values}`,
        )
        const [plan] = rows[0]?.['QUERY PLAN'] ?? []
        // The statement `open` reads only the last entry of the index, which is the newest batch.
        const passes = plan === undefined ? ['no plan'] : findPasses(plan.Plan)
        expect(passes).toEqual(name === 'open' ? ['Index Scan of journal_batches_pkey by nothing'] : [])
      } finally {
        client.release()
      }
    },
  )
})
