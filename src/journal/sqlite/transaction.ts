import type { DatabaseSync } from 'node:sqlite'

import type { HighWater } from '../high-water/high-water.ts'
import type { GroupStatements } from './statements.ts'

/** What a transaction is checked against. */
export interface Watch {
  /** Checks the files. */
  readonly check: () => void
  readonly highWater: HighWater
}

/** The columns of `countCommit`. */
interface CommitRow {
  readonly identity: unknown
  readonly commits: unknown
}

/** Begins a transaction that counts itself, with the only lock for writing, and gives its number. */
export function beginCounted(
  database: DatabaseSync,
  on: GroupStatements,
  { check, highWater }: Watch,
): number {
  check()
  const known = highWater.known()
  database.exec('BEGIN IMMEDIATE')
  return highWater.check(on.countCommit.get() as CommitRow | undefined, known)
}
