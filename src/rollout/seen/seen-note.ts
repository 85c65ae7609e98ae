import type { Side } from '../stage.ts'
import {
  type DistinctCount,
  emptyCount,
  estimateOf,
  formatCount,
  mergedCount,
  parseCount,
} from './distinct-count.ts'

/** What was seen of the writes of a partner on one side. */
export interface SeenSide {
  readonly batches: number
  /** Learner and event. */
  readonly records: DistinctCount
  readonly schools: DistinctCount
  /** The letters or ids of the marks. */
  readonly codes: ReadonlySet<string>
}

/** What was seen of a partner since its stage or share changed last, over all instances. */
export interface SeenNote {
  readonly revision: number
  readonly sides: Readonly<Record<Side, SeenSide>>
  /** Writes of V2 that could not be decoded or translated. */
  readonly unreadable: number
  /** What V3 has said last to the credentials that this partner is served with; `ownRefused`: to those of the configuration. */
  readonly credentials: 'accepted' | 'refused' | 'ownRefused' | 'notTried'
  /** Records of the latest minutes, by minutes since the epoch. */
  readonly minutes: ReadonlyMap<number, number>
  /** The most records in a minute that is over. */
  readonly peakPerMinute: number
}

/** A note while it is written. */
export interface SeenDraft {
  revision: number
  readonly sides: Readonly<Record<Side, SeenSide & { batches: number; readonly codes: Set<string> }>>
  unreadable: number
  credentials: SeenNote['credentials']
  readonly minutes: Map<number, number>
  readonly peakPerMinute: number
}

const VERSION = 1
const verdicts = ['accepted', 'refused', 'ownRefused'] as const
/** More different codes than the service has are not worth a place. */
const MAX_CODES = 200
/** Instances add to a minute until it is this old. */
const OPEN_MINUTES = 3

/** Nothing seen yet at a revision. */
export function nothingSeen(revision: number): SeenDraft {
  const side = (): SeenDraft['sides'][Side] => ({
    batches: 0,
    records: emptyCount(),
    schools: emptyCount(),
    codes: new Set<string>(),
  })
  return {
    revision,
    sides: { v2: side(), v3: side() },
    unreadable: 0,
    credentials: 'notTried',
    minutes: new Map(),
    peakPerMinute: 0,
  }
}

/** The name under which the store keeps the note of a partner. */
export function seenName(partner: string): string {
  return `seen ${partner}`
}

/** Both together; of notes of different revisions only the newer one counts, with the peak and the credentials of both. */
export function mergedNotes(kept: SeenNote, added: SeenNote): SeenNote {
  const [older, newer] = kept.revision <= added.revision ? [kept, added] : [added, kept]
  const isSame = older.revision === newer.revision
  const sideOf = (side: Side): SeenSide =>
    isSame ? mergedSides(older.sides[side], newer.sides[side]) : newer.sides[side]
  const minutes = new Map(kept.minutes)
  for (const [minute, records] of added.minutes) minutes.set(minute, (minutes.get(minute) ?? 0) + records)
  const latest = Math.max(...minutes.keys())
  const closed = [...minutes].filter(([minute]) => minute <= latest - OPEN_MINUTES)
  for (const [minute] of closed) minutes.delete(minute)
  return {
    revision: newer.revision,
    sides: { v2: sideOf('v2'), v3: sideOf('v3') },
    unreadable: isSame ? older.unreadable + newer.unreadable : newer.unreadable,
    credentials: added.credentials === 'notTried' ? kept.credentials : added.credentials,
    minutes,
    peakPerMinute: Math.max(kept.peakPerMinute, added.peakPerMinute, ...closed.map(([, records]) => records)),
  }
}

/** The most records in a minute, also in those that are not over. */
export function peakOf({ minutes, peakPerMinute }: SeenNote): number {
  return Math.max(peakPerMinute, ...minutes.values())
}

/** The figures of one side. */
export function figuresOf({ batches, records, schools, codes }: SeenSide): {
  readonly batches: number
  readonly records: number
  readonly schools: number
  readonly codes: readonly string[]
} {
  return { batches, records: estimateOf(records), schools: estimateOf(schools), codes: [...codes].sort() }
}

function mergedSides(one: SeenSide, other: SeenSide): SeenSide {
  return {
    batches: one.batches + other.batches,
    records: mergedCount(one.records, other.records),
    schools: mergedCount(one.schools, other.schools),
    codes: new Set([...one.codes, ...other.codes].slice(0, MAX_CODES)),
  }
}

/** A note as text. */
export function formatSeen({ sides, minutes, ...rest }: SeenNote): string {
  const side = ({ batches, records, schools, codes }: SeenSide): object => ({
    batches,
    records: formatCount(records),
    schools: formatCount(schools),
    codes: [...codes],
  })
  const written = { v2: side(sides.v2), v3: side(sides.v3) }
  return JSON.stringify({ version: VERSION, ...rest, sides: written, minutes: [...minutes] })
}

/** Reads a note. One that is damaged counts as none: then more is to be seen before a step is advised, never less. */
export function parseSeen(text: string | undefined): SeenNote {
  const note = membersOf(text === undefined ? undefined : parseJson(text))
  if (note['version'] !== VERSION) return nothingSeen(0)
  const sides = membersOf(note['sides'])
  const [v2, v3] = [sideFrom(sides['v2']), sideFrom(sides['v3'])]
  if (v2 === undefined || v3 === undefined) return nothingSeen(0)
  const { credentials } = note
  return {
    revision: numberFrom(note['revision']),
    sides: { v2, v3 },
    unreadable: numberFrom(note['unreadable']),
    credentials: verdicts.find((one) => one === credentials) ?? 'notTried',
    minutes: new Map(listFrom(note['minutes']).map((entry) => pairFrom(entry))),
    peakPerMinute: numberFrom(note['peakPerMinute']),
  }
}

function sideFrom(value: unknown): SeenSide | undefined {
  const side = membersOf(value)
  const [records, schools] = [parseCount(side['records']), parseCount(side['schools'])]
  if (records === undefined || schools === undefined) return undefined
  const codes = listFrom(side['codes']).filter((code) => typeof code === 'string')
  return { batches: numberFrom(side['batches']), records, schools, codes: new Set(codes) }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function membersOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? { ...value } : {}
}

const listFrom = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])
const numberFrom = (value: unknown): number => (typeof value === 'number' && value >= 0 ? value : 0)

function pairFrom(value: unknown): readonly [number, number] {
  const [minute, records] = listFrom(value)
  return [numberFrom(minute), numberFrom(records)]
}
