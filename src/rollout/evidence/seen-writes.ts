import * as z from 'zod'

import { actOnEach, type Duty } from '../../heartbeat.ts'
import { parseStored, type Side } from '../stage.ts'
import type { RolloutStore } from '../store/rollout-store.ts'
import { addCounts, codeFingerprint, countName, countsOf } from './count-name.ts'
import { type EvidenceEntry, type HashedPair, MAX_WRITTEN } from './evidence-store.ts'
import type { EvidenceKeeper } from './keep-evidence.ts'
import { checkBits, type EvidenceKey } from './evidence-key.ts'
import type { EvidenceScope, KeptEvidence } from './read-kept.ts'

/** What is known of a partner at any stage, over all instances. */
export interface SeenNote {
  /** What V3 has said last to the credentials that this partner is served with; `ownRefused`: to those of the configuration. */
  readonly credentials: 'accepted' | 'refused' | 'ownRefused' | 'notTried'
  /** Records of the latest minutes, by minutes since the epoch. */
  readonly minutes: ReadonlyMap<number, number>
  /** The most records in a minute that is over. */
  readonly peakPerMinute: number
}

/** Instances add to a minute until it is this old. */
const OPEN_MINUTES = 3

const nothingSeen: SeenNote = { credentials: 'notTried', minutes: new Map(), peakPerMinute: 0 }

/** The name under which the store keeps the note of a partner. */
export function seenName(partner: string): string {
  return `seen ${partner}`
}

/** Both together. */
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

/** The most records in a minute, also in those that are not over. */
export function peakOf({ minutes, peakPerMinute }: SeenNote): number {
  return Math.max(peakPerMinute, ...minutes.values())
}

const count = z.int().nonnegative()
const schema = z.strictObject({
  credentials: z.enum(['accepted', 'refused', 'ownRefused', 'notTried']),
  minutes: z.array(z.tuple([count, count])).transform((minutes) => new Map(minutes)),
  peakPerMinute: count,
})

/** A note as text. */
function formatNote({ minutes, ...note }: SeenNote): string {
  return JSON.stringify({ ...note, minutes: [...minutes] })
}

/** Reads a note. One that is damaged counts as none: then more is to be seen before a step is advised, never less. */
export function parseNote(text = ''): SeenNote {
  return parseStored(schema, text) ?? nothingSeen
}

/** What was seen of the writes of a partner on one side at one stage and share. */
export interface SeenSide {
  readonly batches: number
  /** Distinct records, `MAX_WRITTEN` at most. */
  readonly records: number
  readonly schools: number
  /** Fingerprints of the codes of its marks. */
  readonly codes: readonly string[]
}

/** The figures of one side by what is kept at a stage and share; undefined: nothing is. */
export function seenOf(kept: KeptEvidence | undefined, side: Side): SeenSide {
  const counts = kept?.counts ?? new Map<string, number>()
  const schools = (kept?.periods ?? []).map((period) => period.schools[checkBits[side]] ?? [])
  const batches = countsOf(counts, 'batch').find(({ fields }) => fields[0] === side)?.count ?? 0
  const codes = countsOf(counts, 'written').flatMap(({ fields: [of, code] }) =>
    of === side && code !== undefined ? [code] : [],
  )
  return {
    batches,
    // Each period has a key of its own, so that a record of two of them cannot be told from two.
    records: Math.max(0, ...schools.map((records) => records.reduce((sum, one) => sum + one, 0))),
    schools: Math.max(0, ...schools.map(({ length }) => length)),
    codes: codes.sort(),
  }
}

/** Writes of V2 that could not be decoded or translated. */
export function unreadableOf(kept: KeptEvidence | undefined): number {
  return countsOf(kept?.counts ?? new Map(), 'unreadable')[0]?.count ?? 0
}

/** A write that was decoded. On V3 it counts with the records that V3 has confirmed or refused, and not at all without one. */
export interface SeenWrite extends EvidenceScope {
  readonly side: Side
  readonly unit: string
  /** Milliseconds since the epoch. */
  readonly receivedMs: number
  readonly records: () => readonly SeenRecord[]
}

interface SeenRecord {
  /** Undefined: the record cannot be read. */
  readonly key: string | undefined
  readonly code: string | undefined
  /** False: V3 did not say what became of it. */
  readonly hasOutcome: boolean
}

export type LiveSeen = ReturnType<typeof createLiveSeen>

interface LiveSeenOptions {
  readonly evidence: Pick<EvidenceKeeper, 'add'>
  readonly store: Pick<RolloutStore, 'updateText'>
}

const EVERY_MS = 10_000

/** Nothing is kept: for an adapter without a store. */
export const noSeen: LiveSeen = {
  wrote: () => undefined,
  unreadable: () => undefined,
  credentials: () => undefined,
  duties: [],
}

/**
 * Creates what notes all that the advice on the next step of a partner needs to know of its writes. No text of a write is kept. The notes of
 * an instance are added to those of all instances in the store. Notes that could not be kept are lost, so that more has to be seen.
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
    /** A write that was decoded. */
    wrote: ({ records, ...write }: SeenWrite): void => {
      const all = records()
      note(write.partner, { minutes: new Map([[Math.floor(write.receivedMs / 60_000), all.length]]) })
      const counted = all.filter(({ hasOutcome }) => hasOutcome)
      if (counted.length === 0) return
      evidence.add(write, { size: counted.length, toEntry: (key) => written(write, counted, key) })
    },
    /** V2 was sent a write that cannot be decoded. */
    unreadable: (scope: EvidenceScope): void => {
      const counts = new Map([[countName('unreadable'), 1]])
      evidence.add(scope, { size: 1, toEntry: () => ({ counts, pairs: [] }) })
    },
    /** What V3 says to the credentials that the partner is served with. */
    credentials: (partner: string, verdict: Exclude<SeenNote['credentials'], 'notTried'>): void =>
      note(partner, { credentials: verdict }),
    duties,
  }
}

/** Creates what makes the entry of a write: counts, and each record that this instance has not added before, up to `MAX_WRITTEN` of them. */
function createWritten() {
  /** Of the running period of each partner and side. */
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
