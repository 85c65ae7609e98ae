import { describeMark } from '../diff/index.ts'
import type { ComparedRecord, RecordTrait } from '../compared-exchange.ts'

/** A flat record as JSON has it: of either side, of any form. */
export type FlatMark = Readonly<Record<string, unknown>>

/** What advice wants to know of a record besides its verdict. */
export type RecordFacts = Pick<
  ComparedRecord,
  'learner' | 'day' | 'code' | 'codeClass' | 'traits' | 'errorCodes'
>

/** The facts of a flat record. */
export function factsOf(
  mark: FlatMark,
  more: { readonly isCorrection: boolean; readonly errorCodes?: readonly string[] },
): RecordFacts {
  const { learner, day, code, codeClass, traits: own } = describeMark({ v2: mark, v3: undefined })
  const traits: readonly RecordTrait[] =
    more.isCorrection && !own.includes('correction') ? [...own, 'correction'] : own
  return { learner, day, code, codeClass, traits, errorCodes: more.errorCodes ?? [] }
}

/** The facts of a record that cannot be read. */
export const noFacts: RecordFacts = {
  learner: undefined,
  day: undefined,
  code: undefined,
  codeClass: undefined,
  traits: [],
  errorCodes: [],
}

/** Key of a mark: its learner and event. */
export function markKey(mark: FlatMark): string | undefined {
  const [learner, event] = [textOf(mark['Learner']), textOf(mark['AttendableEvent'])]
  return learner === undefined || event === undefined ? undefined : `${learner} ${event}`.toLowerCase()
}

/** The flat records of an answer: a page, the `d` of OData V2, or one record. Undefined: it is none of these. */
export function marksOf(json: unknown): readonly FlatMark[] | undefined {
  const inner = isObject(json) && isObject(json['d']) ? json['d'] : json
  if (!isObject(inner)) return undefined
  const rows = inner['value'] ?? inner['results']
  if (rows === undefined) return 'ExternalID' in inner || 'Learner' in inner ? [inner] : undefined
  return Array.isArray(rows) && rows.every(isObject) ? rows : undefined
}

export function isObject(value: unknown): value is FlatMark {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)
