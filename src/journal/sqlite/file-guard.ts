import { closeSync, openSync, readSync, type Stats, statSync } from 'node:fs'

import { damagedJournal } from '../store/damage.ts'

/** Sees to it that the files that are open are still those that the path names. */
export interface FileGuard {
  /** Error: `ADP_JOURNAL_DAMAGED`. */
  check(): void
}

/**
 * Creates the guard of a database that was just opened. SQLite writes on into a file that was deleted or renamed, and what it
 * writes is gone with the process. Neither file gets shorter in use, except the log by a checkpoint that truncates it, and the file
 * by a `VACUUM` of another process.
 */
export function createFileGuard(path: string): FileGuard {
  const log = `${path}-wal`
  const opened = statSync(path)
  let size = opened.size
  let openedLog: Stats | undefined
  return {
    check: () => {
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
    },
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
