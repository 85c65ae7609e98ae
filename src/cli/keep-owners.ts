import { chmodSync, chownSync, statSync, type Stats } from 'node:fs'
import { dirname } from 'node:path'

/**
 * Runs work that replaces files, and gives them back to their owners with their modes: an operator runs it as root, and the adapter has to
 * read and write them after that. A file that is new belongs to the owner of the first one that was there, or else of the folder. `foreign`:
 * files that this user may not give back.
 */
export async function keepOwners<Result>(
  paths: readonly string[],
  work: () => Promise<Result>,
): Promise<{ readonly result: Result; readonly foreign: readonly string[] }> {
  const before = new Map(paths.map((path) => [path, statOf(path)]))
  const other = [...before.values()].find((stat) => stat !== undefined)
  const folder = paths[0] === undefined ? undefined : statOf(dirname(paths[0]))
  const result = await work()
  const foreign = paths.filter((path) => {
    const owner = before.get(path) ?? other ?? folder
    const now = statOf(path)
    if (owner === undefined || now === undefined) return false
    try {
      if (owner.isFile()) chmodSync(path, owner.mode & 0o777)
      if (now.uid !== owner.uid || now.gid !== owner.gid) chownSync(path, owner.uid, owner.gid)
      return false
    } catch {
      return true
    }
  })
  return { result, foreign }
}

const statOf = (path: string): Stats | undefined => statSync(path, { throwIfNoEntry: false })
