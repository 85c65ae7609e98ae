import { closeSync, existsSync, openSync } from 'node:fs'

/**
 * Creates a missing SQLite file, which only its owner can read. SQLite gives the files beside the database (-wal, -shm) the same permissions.
 * Does not open an existing file, because closing any descriptor of a file releases all locks that this process has on the file (fcntl).
 * Another process would then take itself for the only user, and delete the log (-wal) with the latest commits.
 */
export function createSqliteFile(path: string): void {
  if (existsSync(path)) return
  try {
    closeSync(openSync(path, 'wx', 0o600))
  } catch (cause) {
    if (!(cause instanceof Error && 'code' in cause && cause.code === 'EEXIST')) throw cause
    // Either another thread or process has created the file meanwhile, or the path is a symbolic link to a missing file, which is created.
    if (!existsSync(path)) closeSync(openSync(path, 'a', 0o600))
  }
}
