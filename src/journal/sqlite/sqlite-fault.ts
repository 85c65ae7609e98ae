import type { Fault } from '../store/fault.ts'

/** Primary result codes of SQLite (sqlite.org/rescode.html) that an operator can act on. */
const messages: Readonly<Record<number, string>> = {
  5: 'another program holds the database',
  6: 'another program holds the database',
  8: 'the file cannot be written',
  10: 'the disk cannot be read or written',
  11: 'the database file is damaged',
  13: 'the disk is full',
  14: 'the file cannot be opened',
  26: 'the file is no database',
}
const [CONSTRAINT, MISMATCH, TOO_BIG] = [19, 20, 18]

/** What an error of node:sqlite means. Also for one that was sent by another thread, which keeps no members of its own. */
export function toSqliteFault(error: unknown): Fault {
  const code = errorCode(error) & 0xff
  const message = messages[code] ?? 'the database refuses it'
  const refused = code === CONSTRAINT || code === MISMATCH || code === TOO_BIG || error instanceof TypeError
  return { kind: refused ? 'refused' : 'transient', message, cause: error }
}

function errorCode(error: unknown): number {
  if (typeof error !== 'object' || error === null || !('errcode' in error)) return 0
  return Number(error.errcode)
}
