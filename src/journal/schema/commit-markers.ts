/** Rows of `journal_meta`, one for each instance on PostgreSQL: the mark of its last ordered group. */
const PREFIX = 'last group of instance '

/** Marks of so many instances are kept: of one that is gone it may still be asked what became of its last commit. */
const KEPT = 100

/** The name of an instance's mark. */
export const commitMarkerOf = (instance: number): string => `${PREFIX}${instance}`

/** The start of all their names. */
export const commitMarkerPattern = `${PREFIX}%`

/** True if no instance will read the marker again. */
export function isOldCommitMarker(name: string, newestInstance: number): boolean {
  return name.startsWith(PREFIX) && Number(name.slice(PREFIX.length)) <= newestInstance - KEPT
}
