import { type Kysely, sql } from 'kysely'

import type { WallClock } from '../clock.ts'
import { readMeta, writeMeta } from './meta.ts'
import type { Store } from './store.ts'
import type { JournalTables } from './tables.ts'

/** The highest number of a batch that was there when the journal had this age, ms. */
type Sighting = readonly [batch: number, ageMs: number]

/** The stored age of the journal. */
interface KeptAge {
  readonly ageMs: number
  /** Oldest first. */
  readonly sightings: readonly Sighting[]
}

/**
 * The age of the journal: the time that instances had it open, measured by their monotonic clocks. It is never more than the time
 * that has passed, whatever wall clocks do, so nothing that must be remembered for a time is forgotten before it has this age.
 */
export interface Ageing {
  /** The age now, ms. */
  ageMs(): number
  /** Batches up to this number have been there for longer than a resend is recognised. */
  forgottenBatch(): number
  /** Makes the age durable, and that the batches begun until now are there. Rejects as the driver does. */
  note(): Promise<void>
}

interface AgeingOptions {
  readonly store: Pick<Store, 'exclusively'>
  readonly clock: Pick<WallClock, 'nowMs'>
  readonly replayForMs: number
}

/** The name in `journal_meta`. */
const AGE = 'age'
/** Between two sightings, as a share of the time that they measure. */
const STEP = 1 / 96

const newborn: KeptAge = { ageMs: 0, sightings: [] }

/** Reads the age that a journal has reached; 0 for one that kept none yet. */
export async function readAge(db: Kysely<JournalTables>): Promise<number> {
  return (await readKeptAge(db)).ageMs
}

/** Goes on with the age of a journal whose tables are up to date. Rejects as the driver does. */
export async function openAgeing({ store, clock, replayForMs }: AgeingOptions): Promise<Ageing> {
  const openedMs = clock.nowMs()
  let openedAgeMs = 0
  let forgotten = 0
  const ageMs = (): number => openedAgeMs + clock.nowMs() - openedMs
  const note = (isFirst: boolean): Promise<void> =>
    store.exclusively(async (db) => {
      const kept = await readKeptAge(db)
      if (isFirst) openedAgeMs = kept.ageMs
      const age = Math.floor(Math.max(kept.ageMs, ageMs()))
      const newest = await readLastBatch(db)
      const sightings = addSighting(kept.sightings, [newest, age], replayForMs)
      forgotten = Math.max(forgotten, newestOlderThan(sightings, age - replayForMs))
      await writeMeta(db, AGE, formatAge({ ageMs: age, sightings }))
    })
  await note(true)
  return { ageMs, forgottenBatch: () => forgotten, note: () => note(false) }
}

/** How often the age is to be noted, ms. */
export function ageingStepMs(replayForMs: number): number {
  return Math.max(1_000, replayForMs * STEP)
}

async function readKeptAge(db: Kysely<JournalTables>): Promise<KeptAge> {
  const text = await readMeta(db, AGE)
  if (text === undefined) return newborn
  const [ageMs, ...sightings] = text.split(' ')
  return { ageMs: Number(ageMs), sightings: sightings.map(toSighting) }
}

function toSighting(text: string): Sighting {
  const [batch, ageMs] = text.split('@')
  return [Number(batch), Number(ageMs)]
}

/** As `3600000 17@0 204@900000`: the age, then batches with theirs. */
function formatAge({ ageMs, sightings }: KeptAge): string {
  return [String(ageMs), ...sightings.map(([batch, seenMs]) => `${batch}@${seenMs}`)].join(' ')
}

async function readLastBatch(db: Kysely<JournalTables>): Promise<number> {
  const { rows } = await sql<{ last: number }>`select max(last_batch) as last from journal_commits`.execute(
    db,
  )
  return rows[0]?.last ?? 0
}

/** Of the sightings that are old enough the newest says all; several instances add no more than one would. */
function addSighting(before: readonly Sighting[], added: Sighting, replayForMs: number): readonly Sighting[] {
  const [, ageMs] = added
  const needed = before.filter((_, index) => (before[index + 1]?.[1] ?? Infinity) > ageMs - replayForMs)
  const last = needed.at(-1)
  return last !== undefined && ageMs - last[1] < ageingStepMs(replayForMs) / 2 ? needed : [...needed, added]
}

function newestOlderThan(sightings: readonly Sighting[], ageMs: number): number {
  return sightings.reduce(
    (newest, [batch, seenMs]) => (seenMs <= ageMs ? Math.max(newest, batch) : newest),
    0,
  )
}
