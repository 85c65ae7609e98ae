import type { KyselyPlugin } from 'kysely'
import { expect, it } from 'vitest'

import { readDue } from '../../src/journal/read-records.ts'
import { makeFolder, openSqlite } from './open-sqlite.ts'

/** Explains a statement in place of running it. */
const explaining: KyselyPlugin = {
  transformQuery: ({ node }) =>
    node.kind === 'RawNode'
      ? {
          ...node,
          sqlFragments: [`explain query plan ${node.sqlFragments[0]}`, ...node.sqlFragments.slice(1)],
        }
      : node,
  transformResult: ({ result }) => Promise.resolve(result),
}

it('SQLite begins to search what is due behind the last record that was read', async () => {
  const { store } = await openSqlite(`${await makeFolder()}/journal.db`)
  const after = { retryMs: 1, batch: 2, position: 3 }
  const plan = JSON.stringify(await readDue(store.db.withPlugin(explaining), 10, 10, after))
  expect(plan.match(/journal_records_due \(\(retry,batch,position\)>\(\?,\?,\?\)/g)).toHaveLength(2)
  expect(plan).not.toContain('TEMP B-TREE')
})
