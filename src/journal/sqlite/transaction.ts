import type { DatabaseSync } from 'node:sqlite'

import type { CommitCounts } from '../high-water/commit-counts.ts'
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
  /** With its own. */
  readonly commits: number
}

/** One writer at a time: all commits are counted in one slot. */
const SLOT = 0

/** Begins a transaction that counts itself, with the only lock for writing, and gives its number. */
export function beginCounted(
  database: DatabaseSync,
  on: GroupStatements,
  { check, highWater }: Watch,
): CommitCounts {
  check()
  const known = highWater.known()
  database.exec('BEGIN IMMEDIATE')
  const row = on.countCommit.get() as CommitRow | undefined
  const found = row && { identity: row.identity, commits: new Map([[SLOT, row.commits - 1]]) }
  return highWater.check(found, known, SLOT)
}
