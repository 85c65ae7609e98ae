import { AdapterError } from '../../errors.ts'
import type { Identities } from '../identity.ts'
import { codeDefinitions, systemCodes } from './codes.ts'
import type { CodeDefinition } from './codes.ts'
import type { DayKind } from './terms.ts'

/** A code with its number and ids. */
export interface AttendanceCode extends CodeDefinition {
  /** Position in the lookup, from 1. */
  readonly number: number
  readonly externalId: string
  readonly statutoryId: string
}

/** The lookup of attendance codes. */
export interface CodeTable {
  readonly codes: readonly AttendanceCode[]
  byNumber(number: number): AttendanceCode | undefined
  /** The code with a guid in lower case. */
  byId(externalId: string): AttendanceCode | undefined
  /** The code of a session of such a day without a recorded mark. */
  forUnmarked(kind: DayKind): AttendanceCode
  /** The code with that text, which must be one of the definitions. */
  named(code: string): AttendanceCode
}

/** Gives the codes their ids. */
export function createCodeTable(ids: Identities): CodeTable {
  const codes = codeDefinitions.map((definition, index): AttendanceCode => ({
    ...definition,
    number: index + 1,
    externalId: ids.guid('code', index + 1),
    statutoryId: ids.guid(
      'statutoryCode',
      codeDefinitions.findIndex((one) => one.code === definition.statutory) + 1,
    ),
  }))
  const byGuid = new Map(codes.map((code) => [code.externalId, code]))
  const byText = new Map(codes.map((code) => [code.code, code]))
  const named = (text: string): AttendanceCode => {
    const code = byText.get(text)
    if (code === undefined) throw new AdapterError('ADP_INTERNAL', `The code ${text} is not in the lookup.`)
    return code
  }
  const unmarked: Readonly<Record<DayKind, AttendanceCode>> = {
    school: named(systemCodes.missing),
    weekend: named(systemCodes.weekend),
    holiday: named(systemCodes.holiday),
    training: named(systemCodes.training),
    closure: named(systemCodes.closure),
  }
  return {
    codes,
    byNumber: (number) => codes[number - 1],
    byId: (externalId) => byGuid.get(externalId),
    forUnmarked: (kind) => unmarked[kind],
    named,
  }
}
