import { accessSync, closeSync, constants, mkdirSync, openSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'

import { isBusy } from './to-store-error.ts'
import type { WorkerStart } from './worker-messages.ts'

/** Where the mark of a journal lies: beside its file. */
export const markFileOf = (path: string): string => `${path}.mark`

/**
 * Opens the file of a journal, readable for its owner alone, and creates it where there is none. A commit is on the disk
 * before it returns: synchronous FULL, since WAL with NORMAL makes no fsync at all.
 */
export function openDatabase({ path, existing, busyMs }: Omit<WorkerStart, 'replayForMs'>): DatabaseSync {
  if (existing) accessSync(path, constants.W_OK)
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  // The files beside it (-wal, -shm) get the same rights from SQLite.
  closeSync(openSync(path, 'a', 0o600))
  const database = new DatabaseSync(path, { timeout: busyMs })
  useWal(database, busyMs)
  return database
}

const RETRY_AFTER_MS = 10

/** SQLite does not wait `busyMs` where two connections turn a new file to WAL at the same moment: one of them is refused at once. */
function useWal(database: DatabaseSync, busyMs: number): void {
  const untilMs = performance.now() + busyMs
  for (;;) {
    try {
      database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL')
      return
    } catch (error) {
      if (!isBusy(error) || performance.now() >= untilMs) throw error
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, RETRY_AFTER_MS)
    }
  }
}
