import { isGuid } from '../../odata/index.ts'
import { MAX_PAGE_NODES, parseJson } from '../../upstream/index.ts'
import { describeMark } from '../diff/compare-mark.ts'
import { isMembers, type Members, type Moment, momentOf } from '../diff/values.ts'
import type { ComparedRecord } from './exchange.ts'

/** What advice wants to know of a record besides its verdict. */
type RecordFacts = Omit<ComparedRecord, 'verdict' | 'differences' | 'equivalences' | 'expiredRules'>

/** The facts of a flat record. */
export function factsOf(
  mark: Members,
  {
    isCorrection,
    errorCodes = [],
  }: { readonly isCorrection: boolean; readonly errorCodes?: readonly string[] },
): RecordFacts {
  const own = describeMark({ v2: mark, v3: undefined })
  const isNew = isCorrection && !own.traits.includes('correction')
  return { ...own, traits: isNew ? [...own.traits, 'correction'] : own.traits, errorCodes }
}

/** The facts of a record that cannot be read. */
export const noFacts: RecordFacts = factsOf({}, { isCorrection: false })

/** Key of a mark: its learner and event. */
export function markKey({ Learner: learner, AttendableEvent: event }: Members): string | undefined {
  return typeof learner === 'string' && typeof event === 'string'
    ? `${learner} ${event}`.toLowerCase()
    : undefined
}

/** The id of a mark, in one case. */
export function idOfMark({ ExternalID: id }: Members): string | undefined {
  return typeof id === 'string' && isGuid(id) ? id.toLowerCase() : undefined
}

/** When a mark was recorded; undefined: it does not say. */
export function recordedOn({ RecordedOn: time }: Members): Moment | undefined {
  return typeof time === 'string' ? momentOf(time) : undefined
}

/** When a mark was recorded, ms since the epoch; NaN: it does not say. */
export function recordedMs(mark: Members): number {
  const moment = recordedOn(mark)
  return moment === undefined ? NaN : moment.seconds * 1_000 + moment.nanos / 1_000_000
}

/** A body without the envelope of OData V2; `isEnvelope`: what has a `d` may be a record too. */
export function unwrapped(body: unknown, isEnvelope: (body: Members) => boolean = () => true): unknown {
  return isMembers(body) && isMembers(body['d']) && isEnvelope(body) ? body['d'] : body
}

/** The flat records of an answer: a page, the `d` of OData V2, or one record. Undefined: it is none of these. */
export function marksOf(json: unknown): readonly Members[] | undefined {
  const inner = unwrapped(json)
  if (!isMembers(inner)) return undefined
  const rows = inner['value'] ?? inner['results']
  if (rows === undefined) return 'ExternalID' in inner || 'Learner' in inner ? [inner] : undefined
  return Array.isArray(rows) && rows.every(isMembers) ? rows : undefined
}

/** Stands for a body that is not JSON. */
export const unreadable = Symbol('unreadable')

/** The JSON of a body; undefined for an empty one. */
export function readBody(text: string | undefined): unknown {
  if (text === undefined || text === '') return undefined
  const json = parseJson(text, MAX_PAGE_NODES)
  return json === undefined ? unreadable : json
}

/** One write of a learner and event among the others. */
export interface MarkPlace {
  /** True where this instance had seen an earlier one. */
  readonly isCorrection: boolean
  /** True once a newer one was seen. */
  isSuperseded(): boolean
}

/** Marks of a large school in two days. Of more the oldest are forgotten, and a correction of one is not known as such. */
const MAX_MARKS = 100_000

/** Of a record whose learner or event is not known. */
export const unknownPlace: MarkPlace = { isCorrection: false, isSuperseded: () => false }

/** Creates the order of the writes that this process has seen of each learner and event. It holds keys of marks. */
export function createLatestMarks() {
  /** The place of the last write of each key, the oldest first. */
  const latest = new Map<string, number>()
  let count = 0
  const note = (name: string): number => {
    latest.delete(name)
    latest.set(name, ++count)
    const [oldest] = latest.size > MAX_MARKS ? latest.keys() : []
    if (oldest !== undefined) latest.delete(oldest)
    return count
  }
  return {
    /** Notes a write of these keys. */
    wrote: (partner: string, keys: readonly (string | undefined)[]): void => {
      for (const key of keys) if (key !== undefined) note(`${partner} ${key}`)
    },
    /** Notes a write of these keys, and gives the place of each record in the order of its key. */
    placesOf: (partner: string, keys: readonly (string | undefined)[]): readonly MarkPlace[] =>
      keys.map((key) => {
        if (key === undefined) return unknownPlace
        const name = `${partner} ${key}`
        const isCorrection = latest.has(name)
        const place = note(name)
        return { isCorrection, isSuperseded: () => (latest.get(name) ?? place) > place }
      }),
  }
}
