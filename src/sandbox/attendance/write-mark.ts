import type { ErrorDetail } from '../../errors.ts'
import type { School } from '../school.ts'
import type { Face } from '../store/mark.ts'
import type { OnExisting } from '../store/marks.ts'
import type { RecordView } from './record-entity.ts'

/** A mark as posted to either face; ids in lower case. */
export interface MarkWrite {
  readonly externalId: string
  readonly learner: string
  readonly event: string
  readonly code: string
  /** Undefined: as the code says. */
  readonly present: boolean | undefined
  readonly absent: boolean | undefined
  readonly minutesLate: number | null
  readonly comment: string | null
  /** Milliseconds; undefined: now. */
  readonly recordedOn: number | undefined
  readonly changeProcessName: string | null
  readonly recordedBy: string
}

/** The mark as the reply shows it, the ids that do not exist, or a conflict with an existing mark. */
export type MarkOutcome =
  | { readonly kind: 'written'; readonly view: RecordView }
  | { readonly kind: 'unknownIds'; readonly faults: readonly ErrorDetail[] }
  | { readonly kind: 'conflict'; readonly message: string }

/** Codes of ids that do not exist. The first is this sandbox's own by analogy; service.md 7 shows the others. */
const validationCodes = { learner: 'ATT_VAL_1', event: 'ATT_VAL_2', code: 'ATT_VAL_3' } as const

const conflicts = {
  marked: 'The session of this learner is already marked.',
  idTaken: 'The ExternalID belongs to the mark of another session.',
}

/** Checks the three ids of a mark, all of them, and records it. */
export function writeMark(school: School, face: Face, onExisting: OnExisting, write: MarkWrite): MarkOutcome {
  const learner = school.roster.byId(write.learner)
  const session = school.calendar.byId(write.event)
  const code = school.codes.byId(write.code)
  if (learner === undefined || session === undefined || code === undefined) {
    const faults: ErrorDetail[] = []
    const missing = (of: keyof typeof validationCodes, field: string): void => {
      const message = `The ${field} with this ExternalID does not exist.`
      faults.push({ code: validationCodes[of], target: `${field}/ExternalID`, message })
    }
    if (learner === undefined) missing('learner', 'Attendee')
    if (session === undefined) missing('event', 'Event')
    if (code === undefined) missing('code', 'AttendanceCode')
    return { kind: 'unknownIds', faults }
  }
  const present = write.present ?? (write.absent === true ? false : code.category === 'present')
  const absent = write.absent ?? (write.present === true ? false : code.category === 'absent')
  const writtenAt = school.now()
  const { externalId, changeProcessName } = write
  const { stored, echoed } = school.storedValues.store(write, writtenAt)
  const mark = { externalId, changeProcessName, present, absent }
  const numbers = {
    learner: learner.number,
    session: session.number,
    code: code.number,
    actor: school.actors.number(write.recordedBy),
  }
  const result = school.marks.write(
    { ...mark, ...stored, ...numbers, writtenAt, posted: write },
    face,
    onExisting,
  )
  if (result.outcome === 'conflict') return { kind: 'conflict', message: conflicts[result.reason] }
  school.differences.wrote(face, result.seq, numbers)
  return {
    kind: 'written',
    view: {
      ...mark,
      ...echoed,
      externalId: result.externalId,
      start: session.startText,
      recordedBy: write.recordedBy,
      learner: learner.externalId,
      event: session.externalId,
      code: code.externalId,
    },
  }
}
