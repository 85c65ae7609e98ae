import type { DatabaseSync } from 'node:sqlite'
import { integer, text } from './columns.ts'

/** The people and programs that recorded marks. */
export interface Actors {
  /** The number of an actor, given on first sight. `externalId` in lower case. */
  number(externalId: string): number
  externalId(number: number): string
}

/** Loads the actors of a database and adds new ones as they appear. */
export function createActors(database: DatabaseSync): Actors {
  const rows = database.prepare('SELECT no, external_id FROM actor ORDER BY no').all()
  const ids = rows.map((row) => text(row, 'external_id'))
  const numbers = new Map(rows.map((row) => [text(row, 'external_id'), integer(row, 'no')]))
  const insert = database.prepare('INSERT INTO actor VALUES (?, ?)')
  return {
    number: (externalId) => {
      const known = numbers.get(externalId)
      if (known !== undefined) return known
      const number = ids.push(externalId)
      insert.run(number, externalId)
      numbers.set(externalId, number)
      return number
    },
    externalId: (number) => ids[number - 1] ?? '',
  }
}
