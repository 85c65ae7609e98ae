import * as z from 'zod'

import { countsOf } from '../evidence/count-name.ts'
import { checkBits, type KeptEvidence } from '../evidence/read-kept.ts'
import type { Side } from '../stage.ts'

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

export const nothingSeen: SeenNote = { credentials: 'notTried', minutes: new Map(), peakPerMinute: 0 }

/** The name under which the store keeps the note of a partner. */
export function seenName(partner: string): string {
  return `seen ${partner}`
}

/** Both together. */
export function mergedNotes(kept: SeenNote, added: SeenNote): SeenNote {
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
  minutes: z.array(z.tuple([count, count])),
  peakPerMinute: count,
})

/** A note as text. */
export function formatNote({ minutes, ...note }: SeenNote): string {
  return JSON.stringify({ ...note, minutes: [...minutes] })
}

/** Reads a note. One that is damaged counts as none: then more is to be seen before a step is advised, never less. */
export function parseNote(text: string | undefined): SeenNote {
  try {
    const note = schema.parse(JSON.parse(text ?? 'null'))
    return { ...note, minutes: new Map(note.minutes) }
  } catch {
    return nothingSeen
  }
}

/** What was seen of the writes of a partner on one side at one stage and share. */
interface SeenSide {
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
