import { sql } from 'kysely'

import type { JournalDatabase, JournalKey } from '../../../src/journal/index.ts'
import { type EvidenceKey, toEvidenceKey } from '../../../src/rollout/evidence/evidence-key.ts'
import {
  createEvidenceStore,
  type EvidenceEntry,
  type EvidenceStore,
} from '../../../src/rollout/evidence/evidence-store.ts'
import type { EvidenceScope } from '../../../src/rollout/evidence/read-kept.ts'
import { serve } from '../store/open-stores.ts'

export const DAY_MS = 86_400_000
/** Noon (UTC) on Monday 2 November 2026. */
export const START_MS = Date.UTC(2026, 10, 2, 12)

/** The time of the database clock, which the test sets. */
export interface DatabaseClock {
  nowMs: number
}

export interface OpenedEvidence {
  readonly store: EvidenceStore
  readonly database: JournalDatabase
}

/** Opens an instance with its evidence store, which uses the clock of the test. */
export async function openEvidence(
  url: string,
  clock: DatabaseClock,
  options: { readonly keys?: readonly JournalKey[] } = {},
): Promise<OpenedEvidence> {
  const { journal } = await serve(url, options)
  const database = { ...journal.database, nowMs: () => sql<number>`${clock.nowMs}` }
  // PostgreSQL treats a parameter without a type as text, so the time needs a cast.
  if (database.dialect === 'postgres') database.nowMs = () => sql<number>`${clock.nowMs}::bigint`
  return { store: createEvidenceStore(database), database }
}

export const scope: EvidenceScope = { partner: 'acme', stage: 'shadow', revision: 3 }

/** Returns the evidence of one exchange of one school. Pairs are `learner/day`, and a leading `!` marks a pair that differs. */
export function entryOf(
  key: EvidenceKey,
  pairs: readonly string[],
  given: {
    readonly school?: string
    readonly request?: string
    readonly checks?: number
    readonly counts?: Readonly<Record<string, number>>
  } = {},
): EvidenceEntry {
  const {
    school = 'north',
    request,
    checks = 1,
    counts = { 'verdict batch reply same': pairs.length },
  } = given
  return {
    request: request === undefined ? undefined : key.hash('request', request),
    counts: new Map(Object.entries(counts)),
    pairs: pairs.map((pair) => ({
      hash: key.hash('pair', pair.replace('!', '')),
      school: key.hash('school', school),
      checks,
      differs: pair.startsWith('!') ? checks : 0,
    })),
  }
}

export async function addTo(
  store: EvidenceStore,
  ...[pairs, given]: [readonly string[], Parameters<typeof entryOf>[2]?]
): Promise<void> {
  const key = toEvidenceKey(await store.key(scope))
  await store.add(key.period, [entryOf(key, pairs, given)])
}
