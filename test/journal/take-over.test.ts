import { type KyselyPlugin, sql } from 'kysely'
import { expect, it } from 'vitest'

import { createCommitGate } from '../../src/journal/group-commit.ts'
import { ownProcesses } from '../../src/journal/process-identity.ts'
import { createTakeOver } from '../../src/journal/take-over.ts'
import { batchOf, beginNew } from './batches.ts'
import { createJournalClock, makeFolder, openSqlite } from './open-sqlite.ts'

it('a takeover blocks other commits for the same number of statements, however many batches it takes over', async () => {
  const { journal, store } = await openSqlite(`${await makeFolder()}/journal.db`)
  const instance = journal.lease() ?? 0
  let statements = 0
  const counting: KyselyPlugin = {
    transformQuery: ({ node }) => {
      statements += 1
      return node
    },
    transformResult: ({ result }) => Promise.resolve(result),
  }
  const takeOver = createTakeOver({
    store: { ...store, exclusively: (work) => store.exclusively((at) => work(at.withPlugin(counting))) },
    clock: createJournalClock(),
    processes: ownProcesses(),
    take: async () => {
      const times = { nowMs: 0, ageMs: 0, forgottenAgeMs: 0 }
      const operations = [{ kind: 'takeOver' }] as const
      const committed = await store.commit({ instance, ...times, operations, gate: createCommitGate() })
      const [taken] = committed.ok ? committed.results : []
      if (typeof taken !== 'object' || !('batches' in taken)) throw new Error('it was not committed')
      return taken
    },
  })
  const takeOverAll = async () => {
    statements = 0
    // Assigns all batches to an instance that does not exist.
    await sql`update journal_batches set instance = 1000`.execute(store.db)
    const taken = await takeOver(instance)
    return { batches: taken.map(({ batch, after }) => [batch, [...after.keys()]]), statements }
  }
  const one = await beginNew(journal, batchOf(['a', 'b']))
  const first = await takeOverAll()
  expect(first.batches).toEqual([[one, [0, 1]]])
  for (let more = 0; more < 30; more += 1) await beginNew(journal, batchOf([`c${more}`]))
  const all = await takeOverAll()
  expect(all.batches).toHaveLength(31)
  expect(all.statements).toBe(first.statements)
})
