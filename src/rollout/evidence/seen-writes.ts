import * as z from 'zod'

import { actOnEach, type Duty } from '../../heartbeat.ts'
import { parseStored, type Side } from '../stage.ts'
import type { RolloutStore } from '../store/rollout-store.ts'
import { addCounts, codeFingerprint, countName, countsOf } from './count-name.ts'
import { type EvidenceEntry, type HashedPair, MAX_WRITTEN } from './evidence-store.ts'
import type { EvidenceKeeper } from './keep-evidence.ts'
import { checkBits, type EvidenceKey } from './evidence-key.ts'
import type { EvidenceScope, KeptEvidence } from './read-kept.ts'

/** The facts that all instances together know about a partner, whatever its stage. */
export interface SeenNote {
  /** V3's last verdict on the credentials of this partner. `ownRefused` means that V3 rejected credentials from the configuration. */
  readonly credentials: 'accepted' | 'refused' | 'ownRefused' | 'notTried'
  /** The number of records in each of the latest minutes. The key is the number of minutes since the epoch. */
  readonly minutes: ReadonlyMap<number, number>
  /** The highest number of records in a completed minute. */
  readonly peakPerMinute: number
}

/** Number of minutes for which instances may still add records to a minute. */
const OPEN_MINUTES = 3

const nothingSeen: SeenNote = { credentials: 'notTried', minutes: new Map(), peakPerMinute: 0 }

export function seenName(partner: string): string {
  return `seen ${partner}`
}

function mergedNotes(kept: SeenNote, added: SeenNote): SeenNote {
  const minutes = new Map(kept.minutes)
  for (const [minute, records] of added.minutes) minutes.set(minute, (minutes.get(minute) ?? 0) + records)
  const latest = Math.max(...minutes.keys())
  const closed = [...minutes].filter(([minute]) => minute <= latest - OPEN_MINUTES)
  for (const [minute] of closed) minutes.delete(minute)
  return {
    credentials: added.credentials === 'notTried' ? kept.credentials : added.credentials,
    minutes,
    peakPerMinute: Math.max(kept.peakPerMinute, added.peakPerMinute, ...closed.map(([, records]) => records)),
  }
}

/** Returns the highest number of records in a minute, including minutes that are not completed. */
export function peakOf({ minutes, peakPerMinute }: SeenNote): number {
  return Math.max(peakPerMinute, ...minutes.values())
}

const count = z.int().nonnegative()
const schema = z.strictObject({
  credentials: z.enum(['accepted', 'refused', 'ownRefused', 'notTried']),
  minutes: z.array(z.tuple([count, count])).transform((minutes) => new Map(minutes)),
  peakPerMinute: count,
})

function formatNote({ minutes, ...note }: SeenNote): string {
  return JSON.stringify({ ...note, minutes: [...minutes] })
}

/** Parses a note. A damaged note counts as an empty note, which only makes the advice stricter. */
export function parseNote(text = ''): SeenNote {
  return parseStored(schema, text) ?? nothingSeen
}

/** The writes of a partner that were seen on one side at one stage and percentage. */
export interface SeenSide {
  readonly batches: number
  /** The number of distinct records, at most `MAX_WRITTEN`. */
  readonly records: number
  readonly schools: number
  readonly codes: readonly string[]
}

/** Returns the figures of one side, or zeros if there is no evidence. */
export function seenOf(kept: KeptEvidence | undefined, side: Side): SeenSide {
  const counts = kept?.counts ?? new Map<string, number>()
  const schools = (kept?.periods ?? []).map((period) => period.schools[checkBits[side]] ?? [])
  const batches = countsOf(counts, 'batch').find(({ fields }) => fields[0] === side)?.count ?? 0
  const codes = countsOf(counts, 'written').flatMap(({ fields: [of, code] }) =>
    of === side && code !== undefined ? [code] : [],
  )
  return {
    batches,
    // Uses the period with the most records and not the sum, because a record that occurs in two periods has a different hash in each.
    records: Math.max(0, ...schools.map((records) => records.reduce((sum, one) => sum + one, 0))),
    schools: Math.max(0, ...schools.map(({ length }) => length)),
    codes: codes.sort(),
  }
}

/** Returns the number of writes to V2 that could not be decoded or translated. */
export function unreadableOf(kept: KeptEvidence | undefined): number {
  return countsOf(kept?.counts ?? new Map(), 'unreadable')[0]?.count ?? 0
}

/** A decoded write. All its records count for the record rate, but only records with an outcome count as evidence. */
export interface SeenWrite extends EvidenceScope {
  readonly side: Side
  readonly unit: string
  readonly receivedMs: number
  readonly records: () => readonly SeenRecord[]
}

interface SeenRecord {
  /** The learner and event of the record, or `undefined` if the record cannot be read. */
  readonly key: string | undefined
  readonly code: string | undefined
  /** False if the record was not sent to V2, if V3 did not report its outcome, or if the journal answered a resend. */
  readonly hasOutcome: boolean
}

export type LiveSeen = ReturnType<typeof createLiveSeen>

interface LiveSeenOptions {
  readonly evidence: Pick<EvidenceKeeper, 'add'>
  readonly store: Pick<RolloutStore, 'updateText'>
}

const EVERY_MS = 10_000

export const noSeen: LiveSeen = {
  recordWrite: () => undefined,
  recordUnreadable: () => undefined,
  recordCredentials: () => undefined,
  duties: [],
}

/**
 * Creates the recorder of the facts about a partner's writes that the advice needs. Stores no text of a write. Adds the facts of this
 * instance to the facts of all instances. Facts that cannot be stored are lost, and the advice then requires more writes.
 */
export function createLiveSeen({ evidence, store }: LiveSeenOptions) {
  let notes = new Map<string, SeenNote>()
  const written = createWritten()
  const note = (partner: string, added: Partial<SeenNote>): void => {
    notes.set(partner, mergedNotes(notes.get(partner) ?? nothingSeen, { ...nothingSeen, ...added }))
  }
  const keep = async (): Promise<void> => {
    const taken = notes
    notes = new Map()
    await actOnEach(taken, async ([partner, noted]) => {
      await store.updateText(seenName(partner), (text) => formatNote(mergedNotes(parseNote(text), noted)))
    })
  }
  const duties: readonly Duty[] = [{ name: 'writes seen', everyMs: EVERY_MS, atStop: true, act: keep }]
  return {
    recordWrite: ({ records, ...write }: SeenWrite): void => {
      const all = records()
      note(write.partner, { minutes: new Map([[Math.floor(write.receivedMs / 60_000), all.length]]) })
      const counted = all.filter(({ hasOutcome }) => hasOutcome)
      if (counted.length === 0) return
      evidence.add(write, { size: counted.length, toEntry: (key) => written(write, counted, key) })
    },
    recordUnreadable: (scope: EvidenceScope): void => {
      const counts = new Map([[countName('unreadable'), 1]])
      evidence.add(scope, { size: 1, toEntry: () => ({ counts, pairs: [] }) })
    },
    recordCredentials: (partner: string, verdict: Exclude<SeenNote['credentials'], 'notTried'>): void =>
      note(partner, { credentials: verdict }),
    duties,
  }
}

/** Creates the function that builds the entry of a write: its counts, and each record that this instance has not yet added to the period. */
function createWritten() {
  const added = new Map<string, { readonly period: number; readonly hashes: Set<string> }>()
  return (
    { partner, side, unit }: Pick<SeenWrite, 'partner' | 'side' | 'unit'>,
    records: readonly SeenRecord[],
    key: EvidenceKey,
  ): EvidenceEntry => {
    const counts = new Map([[countName('batch', side), 1]])
    const pairs: HashedPair[] = []
    const name = `${partner} ${side}`
    const known = added.get(name)
    const own = known?.period === key.period ? known : { period: key.period, hashes: new Set<string>() }
    added.set(name, own)
    const school = key.hash('school', unit)
    for (const { key: record, code = '' } of records) {
      const fingerprint = codeFingerprint(code)
      if (fingerprint !== undefined) addCounts(counts, [[countName('written', side, fingerprint), 1]])
      if (record === undefined || own.hashes.size >= MAX_WRITTEN) continue
      const hash = key.hash('record', record)
      const text = Buffer.from(hash).toString('latin1')
      if (!own.hashes.has(text)) pairs.push({ hash, school, checks: 1 << checkBits[side], differs: 0 })
      own.hashes.add(text)
    }
    return { counts, pairs }
  }
}
