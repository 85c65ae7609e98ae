import type { SQLOutputValue } from 'node:sqlite'
import { AdapterError } from '../../errors.ts'

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
export function textOrNull(row: Row, column: string): string | null {
  return row[column] === null ? null : text(row, column)
}
