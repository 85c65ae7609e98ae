import {
  accessSync,
  closeSync,
  constants,
  mkdirSync,
  openSync,
  readSync,
  type Stats,
  statSync,
} from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'

import { damagedJournal } from '../store-error.ts'
import type { ThreadStart } from './thread.ts'
import { isBusy } from './to-store-error.ts'

/** Where the mark of a journal lies: beside its file. */
export const markFileOf = (path: string): string => `${path}.mark`

/**
 * Opens the file of a journal, readable for its owner alone, and creates it where there is none. A commit is on the disk
 * before it returns: synchronous FULL, since WAL with NORMAL makes no fsync at all.
 */
export function openDatabase({ path, existing, busyMs }: ThreadStart): DatabaseSync {
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

/**
 * Creates what checks that the files of a database that was just opened are still those that the path names. SQLite writes on into a
 * file that was deleted or renamed, and what it writes is gone with the process. Neither file gets shorter in use, except the log by a
 * checkpoint that truncates it, and the file by a `VACUUM` of another process. Error: `ADP_JOURNAL_DAMAGED`.
 */
export function createFileGuard(path: string): () => void {
  const log = `${path}-wal`
  const opened = statSync(path)
  let size = opened.size
  let openedLog: Stats | undefined
  return () => {
    const now = statSync(path, { throwIfNoEntry: false })
    if (now === undefined) throw damagedJournal('its file was deleted or renamed while it was in use')
    if (!isSame(now, opened)) throw damagedJournal('another file has taken its place while it was in use')
    if (now.size < size && !endsWithItsPages(path, now.size))
      throw damagedJournal('its file was cut short while it was in use')
    size = now.size
    const logNow = statSync(log, { throwIfNoEntry: false })
    if (openedLog === undefined) openedLog = logNow
    else if (logNow === undefined) throw damagedJournal('its log (-wal) was deleted while it was in use')
    else if (!isSame(logNow, openedLog)) throw damagedJournal('another log (-wal) has taken its place')
  }
}

/** True for a file of the length that its header says (sqlite.org/fileformat.html, 1.3): SQLite shortened it, and no cut did. */
function endsWithItsPages(path: string, size: number): boolean {
  const header = Buffer.alloc(32)
  const file = openSync(path, 'r')
  try {
    if (readSync(file, header, 0, header.length, 0) < header.length) return false
  } finally {
    closeSync(file)
  }
  const written = header.readUInt16BE(16)
  // 1 stands for 65,536, which has no room in two bytes.
  return (written === 1 ? 65_536 : written) * header.readUInt32BE(28) === size
}

const isSame = (one: Stats, other: Stats): boolean => one.ino === other.ino && one.dev === other.dev
