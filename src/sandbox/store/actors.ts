import type { DatabaseSync } from 'node:sqlite'

import { integer, text } from './mark.ts'

/** The people and programs that recorded marks. */
export interface Actors {
  /** The number of an actor, given on first sight. `externalId` in lower case. */
  number(externalId: string): number
  externalId(number: number): string
  /** Clears cached data of writes that were rolled back. */
  reload(): void
}

/** Loads the actors of a database and adds new ones as they appear. */
export function createActors(database: DatabaseSync): Actors {
  const select = database.prepare('SELECT no, external_id FROM actor ORDER BY no')
  let ids: string[] = []
  let numbers = new Map<string, number>()
  const reload = (): void => {
    const rows = select.all()
    ids = rows.map((row) => text(row, 'external_id'))
    numbers = new Map(rows.map((row) => [text(row, 'external_id'), integer(row, 'no')]))
  }
  reload()
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
    reload,
    externalId: (number) => ids[number - 1] ?? '',
  }
}
