import type { Kysely } from 'kysely'

import type { WallClock } from '../clock.ts'
import { readMeta, writeMeta } from './meta.ts'
import type { Store } from './store.ts'
import type { JournalTables } from './tables.ts'

/**
 * The age of the journal: the time that instances had it open, measured by their monotonic clocks. It is never more than the time
 * that has passed, whatever wall clocks do, so nothing that must be remembered for a time is forgotten before it has this age.
 */
export interface Ageing {
  /** The age now, ms. */
  ageMs(): number
  /** Batches that began at this age or before are older than a resend is recognised. */
  forgottenAgeMs(): number
  /** Makes the age durable, and takes over that of others which had the journal open for longer. Rejects as the driver does. */
  note(): Promise<void>
}

interface AgeingOptions {
  readonly store: Pick<Store, 'exclusively'>
  readonly clock: Pick<WallClock, 'nowMs'>
  readonly replayForMs: number
}

/** The name in `journal_meta`. */
const AGE = 'age'
/** Between two notes, as a share of the time that is measured: instances differ by no more. */
const STEP = 1 / 96

/** Reads the age that a journal has reached, ms; 0 for one that kept none yet. */
export async function readAge(db: Kysely<JournalTables>): Promise<number> {
  return Number((await readMeta(db, AGE)) ?? 0)
}

/** Goes on with the age of a journal whose tables are up to date. Rejects as the driver does. */
export async function openAgeing({ store, clock, replayForMs }: AgeingOptions): Promise<Ageing> {
  let noted = { ageMs: 0, atMs: clock.nowMs() }
  const ageMs = (): number => noted.ageMs + clock.nowMs() - noted.atMs
  const note = (): Promise<void> =>
    store.exclusively(async (db) => {
      const kept = await readAge(db)
      noted = { ageMs: Math.floor(Math.max(kept, ageMs())), atMs: clock.nowMs() }
      await writeMeta(db, AGE, String(noted.ageMs))
    })
  await note()
  const forgottenAgeMs = (): number => Math.floor(ageMs() - replayForMs - ageingStepMs(replayForMs))
  return { ageMs, forgottenAgeMs, note }
}

/** How often the age is to be noted, ms. */
export function ageingStepMs(replayForMs: number): number {
  return Math.max(1_000, replayForMs * STEP)
}
