import { spawnSync } from 'node:child_process'

import { expect, it } from 'vitest'

import { readUncleanEnd } from '../../src/journal/instances.ts'
import { ownIdentity } from '../../src/journal/process-identity.ts'
import { createJournalClock, makeFolder, openSqlite } from './open-sqlite.ts'

const bothOf = async (db: Parameters<typeof readUncleanEnd>[0]): Promise<(number | undefined)[]> => [
  await readUncleanEnd(db, 'killed'),
  await readUncleanEnd(db, 'lost'),
]

it('the journal records no unclean end for an instance that ends cleanly', async () => {
  const file = `${await makeFolder()}/journal.db`
  const [one, other] = [await openSqlite(file), await openSqlite(file)]
  await one.journal.close()
  await other.journal.takeOver()
  expect(await bothOf(other.store.db)).toEqual([undefined, undefined])
})

it('the journal records the end of an instance as killed if the process of the instance has died', async () => {
  const clock = createJournalClock()
  const { journal, store } = await openSqlite(`${await makeFolder()}/journal.db`, { clock })
  const { pid } = spawnSync('true')
  const gone = { ...ownIdentity(), pid, lease_until: clock.wallMs() + 10_000, lease_ms: 10_000 }
  await store.db.insertInto('journal_instances').values(gone).execute()
  await journal.takeOver()
  expect(await bothOf(store.db)).toEqual([clock.wallMs(), undefined])
})

it('the journal records the end of an instance as lost if the instance does not renew its lease', async () => {
  const file = `${await makeFolder()}/journal.db`
  const clock = createJournalClock()
  const { journal, store } = await openSqlite(file, { clock, leaseMs: 9_000 })
  // The instance is on another machine, so only its lease shows that it is dead.
  const far = { ...ownIdentity(), host: 'far', lease_until: clock.wallMs() + 9_000, lease_ms: 9_000 }
  await store.db.insertInto('journal_instances').values(far).execute()
  await journal.takeOver()
  await clock.pass(10_800)
  await journal.takeOver()
  expect(await bothOf(store.db)).toEqual([undefined, clock.wallMs()])
})
