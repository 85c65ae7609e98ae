import type { SQLOutputValue } from 'node:sqlite'

import { AdapterError } from '../../errors.ts'
import type { Identities } from '../identity.ts'

/** A row as the driver gives it. */
export type Row = Readonly<Record<string, SQLOutputValue>>

const wrong = (column: string): AdapterError =>
  new AdapterError('ADP_INTERNAL', `The column ${column} holds a value of another type.`)

/** The value of an INTEGER column that is never null. */
export function integer(row: Row, column: string): number {
  const value = row[column]
  if (typeof value !== 'number') throw wrong(column)
  return value
}

/** The value of an INTEGER column, or null. */
export function integerOrNull(row: Row, column: string): number | null {
  return row[column] === null ? null : integer(row, column)
}

/** The value of a TEXT column that is never null. */
export function text(row: Row, column: string): string {
  const value = row[column]
  if (value instanceof Uint8Array) return Buffer.from(value).toString('utf16le')
  if (typeof value !== 'string') throw wrong(column)
  return value
}

/**
 * Text as it is stored. SQLite keeps UTF-8, in which a lone surrogate would become U+FFFD: such text is stored as UTF-16 in a
 * BLOB, which a TEXT column leaves as it is.
 */
export function storedText(value: string | null): string | Buffer | null {
  return value === null || value.isWellFormed() ? value : Buffer.from(value, 'utf16le')
}

/** The value of a TEXT column, or null. */
function textOrNull(row: Row, column: string): string | null {
  return row[column] === null ? null : text(row, column)
}

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
