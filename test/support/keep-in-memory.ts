import { chmodSync, mkdtempSync, rmSync, statfsSync } from 'node:fs'
import { join } from 'node:path'

/** A file system in memory, as Linux has it. */
const MEMORY = '/dev/shm'
/** A run has less than a quarter of it at a time: mostly databases of PostgreSQL, 8 MB each. */
const ENOUGH_BYTES = 4 * 2 ** 30

/**
 * Puts the temporary files of this process's threads and of programs that it starts in memory, where the machine has room: creating and
 * removing databases is most of what tests of journals do, and each commit waits for the disk. Until the end of the process; another place
 * that was chosen stays.
 */
export function keepInMemory(): void {
  if (process.env['TMPDIR'] !== undefined || freeBytes() < ENOUGH_BYTES) return
  const folder = mkdtempSync(join(MEMORY, 'markbridge-tests-'))
  // PostgreSQL runs as another user.
  chmodSync(folder, 0o755)
  process.env['TMPDIR'] = folder
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
}

function freeBytes(): number {
  try {
    const { bavail, bsize } = statfsSync(MEMORY)
    return bavail * bsize
  } catch {
    return 0
  }
}
