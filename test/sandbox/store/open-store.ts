import { onTestFinished } from 'vitest'
import { createIdentities } from '../../../src/sandbox/identity.ts'
import { openDatabase } from '../../../src/sandbox/store/database.ts'

/** An empty database in memory, closed at the end of the test, and the ids of seed 1. */
export function openStore() {
  const { database, fresh } = openDatabase(':memory:', 'test')
  onTestFinished(() => database.close())
  return { database, fresh, ids: createIdentities(1) }
}
