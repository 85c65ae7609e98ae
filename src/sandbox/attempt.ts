import type { School } from './school.ts'

/** Runs `work` in one transaction and undoes everything it wrote unless it returns true; an error undoes it too. Returns what `work` returned. */
export function attempt(school: School, work: () => boolean): boolean {
  const { database } = school
  database.exec('BEGIN')
  let keep = false
  try {
    keep = work()
    return keep
  } finally {
    database.exec(keep ? 'COMMIT' : 'ROLLBACK')
    if (!keep) for (const store of [school.marks, school.entities, school.actors]) store.reload()
  }
}
