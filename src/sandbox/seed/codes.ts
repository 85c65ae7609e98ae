import { AdapterError } from '../../errors.ts'
import type { Identities } from '../identity.ts'
import type { DayKind } from './calendar.ts'

type CodeCategory = 'present' | 'absent' | 'notCounted' | 'system'

interface CodeDefinition {
  readonly code: string
  readonly description: string
  readonly category: CodeCategory
  /** The statutory code. The statutory code differs from `code` if the school defined `code` itself (service-facts 7). */
  readonly statutory: string
  /** False for codes that can no longer be chosen. */
  readonly visible: boolean
}

const define =
  (category: CodeCategory, visible = true) =>
  (code: string, description: string, statutory = code): CodeDefinition => ({
    code,
    description,
    category,
    statutory,
    visible,
  })
const present = define('present')
const absent = define('absent')
const notCounted = define('notCounted')
const system = define('system')
const retired = define('absent', false)

/** The codes of sessions without a mark, by the reason. `#W`, `#H` and `#T` are more exact forms of `#`, the code for a planned closure. */
const systemCodes = {
  missing: '-',
  weekend: '#W',
  holiday: '#H',
  training: '#T',
  closure: 'Y4',
} as const

/**
 * The codes of England from 19 August 2024, retired codes, and codes of the school (service-facts). Add new codes at the end, because an id
 * contains the position of its code.
 */
export const codeDefinitions: readonly CodeDefinition[] = [
  present('/', 'Present (morning)'),
  present('\\', 'Present (afternoon)'),
  present('L', 'Late, before the register closed'),
  present('K', 'Education provision arranged by the local authority'),
  present('V', 'Educational visit or trip'),
  present('P', 'Sporting activity'),
  present('W', 'Work experience'),
  present('B', 'Other approved educational activity'),
  absent('C', 'Leave for an exceptional circumstance'),
  absent('C1', 'Leave for a regulated performance or employment abroad'),
  absent('C2', 'Leave under a part-time timetable'),
  absent('M', 'Medical or dental appointment'),
  absent('J1', 'Interview for a job or another school'),
  absent('S', 'Study leave'),
  absent('T', 'Parent travelling for work'),
  absent('R', 'Religious observance'),
  absent('I', 'Illness'),
  absent('E', 'Suspended or excluded'),
  absent('G', 'Holiday without permission'),
  absent('N', 'Reason not yet given'),
  absent('O', 'Absent without permission'),
  absent('U', 'Late, after the register closed'),
  notCounted('D', 'Attending another school'),
  notCounted('X', 'Not required to attend, below or above school age'),
  notCounted('Q', 'No access arrangement made'),
  notCounted('Y1', 'Transport not provided'),
  notCounted('Y2', 'Widespread disruption to travel'),
  notCounted('Y3', 'Part of the school premises closed'),
  notCounted('Y4', 'Whole school site closed unexpectedly'),
  notCounted('Y5', 'In the criminal justice system'),
  notCounted('Y6', 'Public health guidance'),
  notCounted('Y7', 'Any other unavoidable cause'),
  system('Z', 'Not yet on the register'),
  system('#', 'Planned closure'),
  system('-', 'No mark recorded'),
  system('#W', 'Weekend', '#'),
  system('#H', 'School holiday', '#'),
  system('#T', 'Training day', '#'),
  absent('I01', 'Illness, sent home', 'I'),
  notCounted('X01', 'Not required, staggered start', 'X'),
  retired('H', 'Holiday with permission'),
  retired('J', 'Interview'),
  define('notCounted', false)('Y', 'Exceptional circumstances'),
]

export interface AttendanceCode extends CodeDefinition {
  /** The position in the lookup, counted from 1. */
  readonly number: number
  readonly externalId: string
  readonly statutoryId: string
}

export type CodeTable = ReturnType<typeof createCodeTable>

export function createCodeTable(ids: Identities) {
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
    byNumber: (number: number): AttendanceCode | undefined => codes[number - 1],
    /** Returns the code with this guid, or `undefined` if there is none. The guid must be in lower case. */
    byId: (externalId: string): AttendanceCode | undefined => byGuid.get(externalId),
    forUnmarked: (kind: DayKind): AttendanceCode => unmarked[kind],
    /** Returns the code with a text such as `/`. Throws `ADP_INTERNAL` if there is no such code. */
    named,
    /** Returns the number of the next visible code of the same category, so that Present and Absent still agree with the code. */
    another: (number: number): number => {
      const others = [...codes.slice(number), ...codes.slice(0, number - 1)]
      const category = codes[number - 1]?.category
      return (others.find((one) => one.visible && one.category === category) ?? codes[0])?.number ?? number
    },
  }
}
