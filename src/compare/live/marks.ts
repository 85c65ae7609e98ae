import { isGuid } from '../../odata/index.ts'
import type { ComparedRecord } from '../compared-exchange.ts'
import { describeMark } from '../diff/index.ts'
import { isMembers, type Members, type Moment, momentOf } from '../diff/values.ts'

/** A flat record as JSON has it: of either side, of any form. */
export type FlatMark = Members
export const isObject = isMembers

/** What advice wants to know of a record besides its verdict. */
type RecordFacts = Omit<ComparedRecord, 'verdict' | 'differences' | 'equivalences' | 'expiredRules'>

/** The facts of a flat record. */
export function factsOf(
  mark: FlatMark,
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
export function markKey({ Learner: learner, AttendableEvent: event }: FlatMark): string | undefined {
  return typeof learner === 'string' && typeof event === 'string'
    ? `${learner} ${event}`.toLowerCase()
    : undefined
}

/** The id of a mark, in one case. */
export function idOfMark({ ExternalID: id }: FlatMark): string | undefined {
  return typeof id === 'string' && isGuid(id) ? id.toLowerCase() : undefined
}

/** When a mark was recorded; undefined: it does not say. */
export function recordedOn({ RecordedOn: time }: FlatMark): Moment | undefined {
  return typeof time === 'string' ? momentOf(time) : undefined
}

/** When a mark was recorded, ms since the epoch; NaN: it does not say. */
export function recordedMs(mark: FlatMark): number {
  const moment = recordedOn(mark)
  return moment === undefined ? NaN : moment.seconds * 1_000 + moment.nanos / 1_000_000
}

/** A body without the envelope of OData V2; `isEnvelope`: what has a `d` may be a record too. */
export function unwrapped(body: unknown, isEnvelope: (body: FlatMark) => boolean = () => true): unknown {
  return isObject(body) && isObject(body['d']) && isEnvelope(body) ? body['d'] : body
}

/** The flat records of an answer: a page, the `d` of OData V2, or one record. Undefined: it is none of these. */
export function marksOf(json: unknown): readonly FlatMark[] | undefined {
  const inner = unwrapped(json)
  if (!isObject(inner)) return undefined
  const rows = inner['value'] ?? inner['results']
  if (rows === undefined) return 'ExternalID' in inner || 'Learner' in inner ? [inner] : undefined
  return Array.isArray(rows) && rows.every(isObject) ? rows : undefined
}

/** Stands for a body that is not JSON. */
export const unreadable = Symbol('unreadable')

/** The JSON of a body; undefined for an empty one. */
export function readBody(text: string | undefined): unknown {
  if (text === undefined || text === '') return undefined
  try {
    return JSON.parse(text) as unknown
  } catch {
    return unreadable
  }
}
