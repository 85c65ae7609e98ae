import { isGuid } from '../../odata/index.ts'
import { MAX_PAGE_NODES, parseJson } from '../../upstream/index.ts'
import { describeMark } from '../diff/compare-mark.ts'
import { isMembers, type Members, type Moment, momentOf } from '../diff/values.ts'
import type { ComparedRecord } from './exchange.ts'

type RecordFacts = Omit<ComparedRecord, 'verdict' | 'differences' | 'equivalences' | 'expiredRules'>

/** Returns the facts about a flat record that the advice on the next step uses. */
export function factsOf(mark: Members, { isCorrection }: Pick<MarkPlace, 'isCorrection'>): RecordFacts {
  const own = describeMark({ v2: mark, v3: undefined })
  const isNew = isCorrection && !own.traits.includes('correction')
  return isNew ? { ...own, traits: [...own.traits, 'correction'] } : own
}

export const noFacts: RecordFacts = factsOf({}, { isCorrection: false })

export function markKey({ Learner: learner, AttendableEvent: event }: Members): string | undefined {
  return typeof learner === 'string' && typeof event === 'string'
    ? `${learner} ${event}`.toLowerCase()
    : undefined
}

/** Returns the id of a mark in lower case, or `undefined` if it is not a GUID. */
export function idOfMark({ ExternalID: id }: Members): string | undefined {
  return typeof id === 'string' && isGuid(id) ? id.toLowerCase() : undefined
}

export function recordedOn({ RecordedOn: time }: Members): Moment | undefined {
  return typeof time === 'string' ? momentOf(time) : undefined
}

/** Returns the `RecordedOn` of a mark in milliseconds since the epoch, or NaN if the mark has no such time. */
export function recordedMs(mark: Members): number {
  const moment = recordedOn(mark)
  return moment === undefined ? NaN : moment.seconds * 1_000 + moment.nanos / 1_000_000
}

/** Removes the envelope `d` of OData V2. `isEnvelope` tells an envelope from a record that has a member `d`. */
export function unwrapped(body: unknown, isEnvelope: (body: Members) => boolean = () => true): unknown {
  return isMembers(body) && isMembers(body['d']) && isEnvelope(body) ? body['d'] : body
}

/** Returns the flat records of an answer: a page, the `d` of OData V2, or one record. Returns `undefined` for any other body. */
export function marksOf(json: unknown): readonly Members[] | undefined {
  const inner = unwrapped(json)
  if (!isMembers(inner)) return undefined
  const rows = inner['value'] ?? inner['results']
  if (rows === undefined) return 'ExternalID' in inner || 'Learner' in inner ? [inner] : undefined
  return Array.isArray(rows) && rows.every(isMembers) ? rows : undefined
}

export const unreadable = Symbol('unreadable')

/** Parses the JSON of a body. Returns `undefined` for an empty body and `unreadable` for invalid JSON. */
export function readBody(text: string | undefined): unknown {
  if (text === undefined || text === '') return undefined
  const json = parseJson(text, MAX_PAGE_NODES)
  return json === undefined ? unreadable : json
}

/** The position of a write among the writes for the same learner and event that this process has observed. */
export interface MarkPlace {
  readonly isCorrection: boolean
  /** Returns true once this process has observed a newer write. */
  isSuperseded(): boolean
}

/**
 * The maximum number of keys (learner and event), about two days of a large school. After eviction, a correction of a mark counts as a new
 * mark.
 */
const MAX_MARKS = 100_000

export const unknownPlace: MarkPlace = { isCorrection: false, isSuperseded: () => false }

/**
 * Creates the register of the order in which this process observed writes. Its keys contain learners and events, so they must not be
 * logged.
 */
export function createLatestMarks() {
  /** The position of the latest write of each key, sorted with the oldest position first. */
  const latest = new Map<string, number>()
  let lastPosition = 0
  const recordWrite = (name: string): number => {
    latest.delete(name)
    latest.set(name, ++lastPosition)
    const [oldest] = latest.size > MAX_MARKS ? latest.keys() : []
    if (oldest !== undefined) latest.delete(oldest)
    return lastPosition
  }
  return {
    recordWrites: (partner: string, keys: readonly (string | undefined)[]): void => {
      for (const key of keys) if (key !== undefined) recordWrite(`${partner} ${key}`)
    },
    /** Registers a write of these keys and returns the position of each record among the writes of its key. */
    placesOf: (partner: string, keys: readonly (string | undefined)[]): readonly MarkPlace[] =>
      keys.map((key) => {
        if (key === undefined) return unknownPlace
        const name = `${partner} ${key}`
        const isCorrection = latest.has(name)
        const place = recordWrite(name)
        return { isCorrection, isSuperseded: () => (latest.get(name) ?? place) > place }
      }),
  }
}
