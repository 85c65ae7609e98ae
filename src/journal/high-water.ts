import { randomBytes } from 'node:crypto'
import {
  closeSync,
  constants,
  existsSync,
  fsyncSync,
  linkSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { dirname } from 'node:path'
import { crc32 } from 'node:zlib'

import { AdapterError, describeFileError } from '../errors.ts'
import { damagedJournal } from './store-error.ts'

/**
 * Numbers of commits by slot (`slotOf`). With one count for all instances, new commits of other instances would hide the lost commits of
 * one instance.
 */
export type CommitCounts = ReadonlyMap<number, number>

/** The state that a journal has reached: its identity, and the number of its commits in each slot. */
export interface HighWaterMark {
  /** A random number that distinguishes the journal from other journals. */
  readonly identity: string
  readonly commits: CommitCounts
}

export interface HighWaterFilePlace {
  readonly path: string
  /** True if a missing file means damage. An SQLite journal with commits always has its high-water file beside the database. */
  readonly required: boolean
}

/** Number of slots for commit counts. If instances share a slot, commits of one can hide commits that the other lost in a failover. */
export const SLOTS = 16

export const slotOf = (instance: number): number => instance % SLOTS

export const totalOf = (counts: CommitCounts): number =>
  [...counts.values()].reduce((total, count) => total + count, 0)

export const missingOf = (found: CommitCounts, known: CommitCounts): number =>
  [...known].reduce((missing, [slot, count]) => missing + Math.max(0, count - (found.get(slot) ?? 0)), 0)

/**
 * Returns the marker of a commit: the number of the instance, its process, and the number of the commit in that process (empty for SQLite).
 */
export const markerOf = (instance: number, process: string, commit: number | string): string =>
  `${instance}/${process}/${commit}`

/** The commit counts that a transaction read after it had increased its own count. */
interface FoundCommits {
  readonly identity: string | undefined
  /** The count in the slot of the transaction's instance. */
  readonly commits: number
  readonly before: { readonly commits: number; readonly marker: string | null }
}

export interface HighWater {
  /** Returns the slot of the last commit of this process, or `undefined` if the process has not committed yet. */
  lastSlot(): number | undefined
  /**
   * Checks that the database is the journal that was opened, and that it contains all commits of the instance. If this process had an
   * earlier instance number, `before` must contain the commits under that number. It is also damage if another process used the number,
   * because only a database that forgot an instance assigns its number again. Throws `ADP_JOURNAL_DAMAGED` if the check fails.
   */
  check(found: FoundCommits, instance: number): void
  /** Records that the transaction that read `commits` is durable. */
  reached(instance: number, commits: number): void
  close(): void
}

/** Creates the high-water mark of a journal that was opened with `mark`. `file` stores the mark for the next start. */
export function createHighWater(
  { mark: start, process }: { readonly mark: HighWaterMark; readonly process: string },
  file: HighWaterFile | undefined,
): HighWater {
  const known = new Map(start.commits)
  let last: number | undefined
  /**
   * The damage that a check found. Every later check throws this error, because commits of other instances may raise the count again and
   * hide the loss.
   */
  let damage: AdapterError | undefined
  const knownOf = (instance: number): number => known.get(slotOf(instance)) ?? 0
  const findDamage = ({ commits, before }: FoundCommits, instance: number): string | undefined => {
    let missing = knownOf(instance) + 1 - commits
    if (last !== undefined && slotOf(last) !== slotOf(instance)) {
      missing = Math.max(missing, knownOf(last) - before.commits)
      const marker = before.marker ?? ''
      if (marker.startsWith(`${last}/`) && !marker.startsWith(markerOf(last, process, '')))
        return 'it was replaced by an older copy while it was in use, and another process has used the instance number of this process'
    }
    return missing <= 0 ? undefined : `it lost ${missing} commit(s) while it was in use`
  }
  return {
    lastSlot: () => (last === undefined ? undefined : slotOf(last)),
    check: (found, instance) => {
      if (damage !== undefined) throw damage
      if (found.identity !== start.identity)
        throw damagedJournal('another journal replaced it while it was in use')
      const why = findDamage(found, instance)
      if (why === undefined) return
      damage = damagedJournal(why)
      throw damage
    },
    reached: (instance, commits) => {
      last = instance
      known.set(slotOf(instance), commits)
      try {
        file?.write({ identity: start.identity, commits: known })
      } catch {
        // Ignores the failure. The mark lags behind the journal, as after a power cut, until the next commit writes it again.
      }
    },
    close: () => file?.close(),
  }
}

/** The result of reading a mark. `unreadable` if the file exists but does not contain a valid mark. */
type FoundMark = HighWaterMark | 'missing' | 'unreadable'

export interface HighWaterFile {
  /** Overwrites the mark without an fsync. After a power cut the mark may lag behind the journal, but is never ahead of the journal. */
  write(mark: HighWaterMark): void
  close(): void
}

export const highWaterFileOf = (path: string): string => `${path}.mark`

/** The size of a high-water mark in bytes: one disk sector, so that a mark is written completely or not at all. */
const LENGTH = 512
const TITLE = 'markbridge journal mark'

/** Returns the mark at `path`. Inconsistent content is read again, because another process may be writing the mark. */
export function readMark(path: string): FoundMark {
  for (let attempt = 0; attempt < 5; attempt += 1) {
    const text = readText(path)
    if (text === undefined) return 'missing'
    const mark = parseMark(text)
    if (mark !== undefined) return mark
  }
  return 'unreadable'
}

/** Opens the high-water file at `path`. If the file is missing, creates it with `mark`, and returns once the file is on the disk. */
export function openHighWaterFile(path: string, mark: HighWaterMark): HighWaterFile {
  if (!existsSync(path)) createMark(path, mark)
  const file = openSync(path, constants.O_RDWR)
  const write = (next: HighWaterMark): void => {
    writeSync(file, formatMark(next), 0, LENGTH, 0)
  }
  return { write, close: () => closeSync(file) }
}

/** Creates the file with its complete content, so that no instance reads an empty file. If several instances create it, the first wins. */
function createMark(path: string, mark: HighWaterMark): void {
  const draft = `${path}.${randomBytes(8).toString('hex')}`
  writeFileSync(draft, formatMark(mark), { mode: 0o600, flag: 'wx', flush: true })
  try {
    linkSync(draft, path)
  } catch (error) {
    // Renames the draft on a file system without hard links.
    if (!isErrno(error, 'EEXIST')) renameSync(draft, path)
  } finally {
    rmSync(draft, { force: true })
  }
  syncFolder(dirname(path))
}

export function replaceMark(path: string, mark: HighWaterMark): void {
  const file = openHighWaterFile(path, mark)
  try {
    file.write(mark)
  } finally {
    file.close()
  }
  const synced = openSync(path, 'r+')
  fsyncSync(synced)
  closeSync(synced)
}

function formatMark({ identity, commits }: HighWaterMark): Buffer {
  const counts = [...commits].map((one) => one.join(':'))
  const text = `${TITLE} ${identity} ${counts.join()}`
  return Buffer.from(`${text} ${checkOf(text)}`.padEnd(LENGTH - 1) + '\n')
}

function parseMark(line: string): HighWaterMark | undefined {
  const [, text = '', identity = '', commits = '', check] =
    /^(markbridge journal mark ([0-9a-f]{32}) ([\d:,]{0,400})) ([0-9a-f]{8}) *\n$/.exec(line) ?? []
  if (check === undefined || check !== checkOf(text)) return undefined
  const counts = commits === '' ? [] : commits.split(',').map((one) => one.split(':').map(Number))
  return { identity, commits: new Map(counts.map(([slot = 0, count = 0]) => [slot, count])) }
}

const checkOf = (text: string): string => crc32(text).toString(16).padStart(8, '0')

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, 'latin1')
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return undefined
    throw unusableMark(path, error)
  }
}

export const unusableMark = (path: string, cause: unknown): AdapterError =>
  new AdapterError(
    'ADP_CONFIGURATION',
    `The file ${path} cannot be read or written: ${describeFileError(cause)}. Nothing was written to the journal. Give the file and its folder to the ` +
      'user of the adapter, or name another folder in journal.stateDir.',
    { cause },
  )

const isErrno = (error: unknown, code: string): boolean =>
  error instanceof Error && 'code' in error && error.code === code

function syncFolder(path: string): void {
  // Does nothing on Windows, which cannot flush a folder. NTFS logs changes of a folder itself.
  if (process.platform === 'win32') return
  const folder = openSync(path, 'r')
  try {
    fsyncSync(folder)
  } finally {
    closeSync(folder)
  }
}

/** Returns the damage if an SQLite journal is missing or empty although its high-water file exists. Opening such a journal would create a new one. */
export function findMissingFile(path: string, mark: string): string | undefined {
  if (readMark(mark) === 'missing') return undefined
  const size = statSync(path, { throwIfNoEntry: false })?.size
  if (size === undefined) return `the database file is missing, although its high-water file ${mark} exists`
  return size === 0 ? `the database file is empty, although its high-water file ${mark} exists` : undefined
}
