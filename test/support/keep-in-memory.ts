import { chmodSync, mkdtempSync, rmSync, statfsSync } from 'node:fs'
import { join } from 'node:path'

/** The in-memory file system of Linux. */
const MEMORY = '/dev/shm'
/** The free space that a run needs in bytes. PostgreSQL databases, of 8 MB each, use most of it. */
const ENOUGH_BYTES = 4 * 2 ** 30

/**
 * Puts the temporary files of this process's threads and of programs that it starts into a folder in memory if the machine has room.
 * Journal tests spend most of their time creating and removing databases, and each commit waits for the disk. The folder is removed when
 * the process ends. Does nothing if `TMPDIR` is already set.
 */
export function keepInMemory(): void {
  if (process.env['TMPDIR'] !== undefined || freeBytes() < ENOUGH_BYTES) return
  const folder = mkdtempSync(join(MEMORY, 'markbridge-tests-'))
  // PostgreSQL runs as another user, who must be able to enter the folder.
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
