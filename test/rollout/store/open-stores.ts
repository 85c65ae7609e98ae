import { type Kysely, sql } from 'kysely'
import { onTestFinished } from 'vitest'

import {
  type DurableJournal,
  type JournalKey,
  type JournalTables,
  openJournal,
} from '../../../src/journal/index.ts'
import type { StageSetting } from '../../../src/rollout/stage.ts'
import { createRolloutStore } from '../../../src/rollout/store/rollout-store.ts'
import type { Acknowledgement } from '../../../src/rollout/store/read-snapshot.ts'
import type { Change } from '../../../src/rollout/store/changes.ts'
import type { RolloutStore } from '../../../src/rollout/store/rollout-store.ts'

/** A running instance with the store of stages of its journal. */
export interface Serving {
  readonly journal: DurableJournal
  readonly store: RolloutStore
  readonly instance: () => number
}

/** Starts an instance on a journal until the end of the test. */
export async function serve(
  url: string,
  options: { readonly keys?: readonly JournalKey[]; readonly leaseMs?: number } = {},
): Promise<Serving> {
  const journal = await openJournal({ url, ...options })
  onTestFinished(() => journal.close())
  const store = createRolloutStore(journal.database)
  return { journal, store, instance: () => journal.lease() ?? 0 }
}

export const keyOf = (id: string): JournalKey => ({ id, key: Buffer.alloc(32, id) })

export const legacy: StageSetting = { stage: 'legacy', percent: 0, always: [], never: [] }
export const shadow: StageSetting = { ...legacy, stage: 'shadow' }
export const canary = (percent: number): StageSetting => ({ ...legacy, stage: 'canary', percent })

/** Returns a change by ada from revision 0, which is `legacy`. */
export function changeTo(to: StageSetting, given: Partial<Change> = {}): Change {
  return { partner: 'acme', expectedRevision: 0, from: legacy, to, by: 'ada', reason: 'a test', ...given }
}

export const soon = { forMs: 60_000, needsApproval: false, quietMs: 0 } as const

export const acknowledged = (
  pendingRevision: number,
  given: Partial<Acknowledgement> = {},
): Acknowledgement => {
  return { partner: 'acme', revision: 0, pendingRevision, writesV2: 0, writesV3: 0, ...given }
}

/** Proposes a change, acknowledges it as drained and commits it. Returns the revision, or -1 if a step fails. */
export async function goForward(serving: Serving, change: Change): Promise<number> {
  const { store } = serving
  const proposed = await store.propose({ ...change, ...soon })
  const revision = proposed.kind === 'proposed' ? proposed.revision : -1
  await store.acknowledge(serving.instance(), [acknowledged(revision, { partner: change.partner })])
  const committed = await store.commit(change.partner, revision)
  return committed.kind === 'committed' ? revision : -1
}

/** Runs statements as anyone who can write to the database could. */
export async function run(db: Kysely<JournalTables>, ...statements: readonly string[]): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db)
}

/** Reads all rows of a table. */
export async function rowsIn<Row extends object>(
  db: Kysely<JournalTables>,
  table: string,
): Promise<readonly Row[]> {
  return (await sql<Row>`select * from ${sql.table(table)}`.execute(db)).rows
}
