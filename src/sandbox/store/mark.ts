import type { Identities } from '../identity.ts'
import { integer, integerOrNull, text, textOrNull } from './columns.ts'
import type { Row } from './columns.ts'

/** One recorded mark. Learner, session, code and actor are numbers of this store; ids are given on the way out. */
export interface Mark {
  readonly learner: number
  readonly session: number
  /** 0, or more where the same session was marked several times and the store keeps duplicates. */
  readonly copy: number
  readonly code: number
  readonly present: boolean
  readonly absent: boolean
  readonly minutesLate: number | null
  readonly comment: string | null
  /** Milliseconds, UTC. */
  readonly recordedOn: number
  readonly actor: number
  readonly changeProcessName: string | null
  readonly externalId: string
  /** Sequence number of the effect that wrote the mark; 0 for the seeded history. */
  readonly seq: number
}

/** The two booleans of a mark in one column. */
export function packFlags(present: boolean, absent: boolean): number {
  return (present ? 1 : 0) | (absent ? 2 : 0)
}

/** Reads a row of `mark` or `mark_history`. */
export function readMark(ids: Identities, row: Row): Mark {
  const learner = integer(row, 'learner')
  const session = integer(row, 'session')
  const flags = integer(row, 'flags')
  return {
    learner,
    session,
    copy: integer(row, 'copy'),
    code: integer(row, 'code'),
    present: (flags & 1) !== 0,
    absent: (flags & 2) !== 0,
    minutesLate: integerOrNull(row, 'minutes_late'),
    comment: textOrNull(row, 'comment'),
    recordedOn: integer(row, 'recorded_on'),
    actor: integer(row, 'actor'),
    changeProcessName: textOrNull(row, 'process'),
    externalId: textOrNull(row, 'external_id') ?? ids.guid('mark', learner, session),
    seq: integer(row, 'seq'),
  }
}

/** Which face of the service accepted a write. */
export type Face = 'V2' | 'V3'

/** An accepted write, as the effect log keeps it: never altered, never removed but by a reset. */
export interface Effect {
  readonly seq: number
  readonly face: Face
  readonly learner: number
  readonly session: number
  readonly code: number
  readonly present: boolean
  readonly absent: boolean
  readonly minutesLate: number | null
  readonly comment: string | null
  readonly externalId: string
}

/** Reads a row of `effect`. */
export function readEffect(row: Row): Effect {
  const flags = integer(row, 'flags')
  return {
    seq: integer(row, 'seq'),
    face: text(row, 'face') === 'V2' ? 'V2' : 'V3',
    learner: integer(row, 'learner'),
    session: integer(row, 'session'),
    code: integer(row, 'code'),
    present: (flags & 1) !== 0,
    absent: (flags & 2) !== 0,
    minutesLate: integerOrNull(row, 'minutes_late'),
    comment: textOrNull(row, 'comment'),
    externalId: text(row, 'external_id'),
  }
}
