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
 * Commits by slot: what one of the instances that commit has lost is not made up by what the others add.
 */
export type CommitCounts = ReadonlyMap<number, number>

/** How far a journal had come: which journal it is, and how many groups were committed to it. */
export interface HighWaterMark {
  /** Random, chosen when the journal was created. */
  readonly identity: string
  readonly commits: CommitCounts
}

/** A mark file to compare a journal with. */
export interface MarkFilePlace {
  readonly path: string
  /** True: a journal with commits always has it, since it lies beside the database. */
  readonly required: boolean
}

/** Slots of commits. What one instance has lost in a failover is not made up by what the others add, as far as there are not more. */
export const SLOTS = 16

/** The slot in which an instance counts its commits. */
export const slotOf = (instance: number): number => instance % SLOTS

export const totalOf = (counts: CommitCounts): number =>
  [...counts.values()].reduce((total, count) => total + count, 0)

/** How many of the known commits are not among those found. */
export const missingOf = (found: CommitCounts, known: CommitCounts): number =>
  [...known].reduce((missing, [slot, count]) => missing + Math.max(0, count - (found.get(slot) ?? 0)), 0)

/** What an instance leaves in its slot with each commit: its number, the process that has it, and the commit's name in that process. */
export const markerOf = (instance: number, process: string, commit: number | string): string =>
  `${instance}/${process}/${commit}`

/** What a transaction found once it had counted itself. */
interface FoundCommits {
  readonly identity: string | undefined
  /** Of the slot of its instance. */
  readonly commits: number
  /** Of `lastSlot`. */
  readonly before: { readonly commits: number; readonly marker: string | null }
}

/** How far this process knows its journal to have come. */
export interface HighWater {
  /** The slot of its last commit; undefined: it has made none. */
  lastSlot(): number | undefined
  /**
   * Checks that this is the same journal, with all commits of the instance and, in `before`, with those that this process made under an earlier
   * number, which no other process has had: a database that forgot an instance gives its number away. Error: `ADP_JOURNAL_DAMAGED`.
   */
  check(found: FoundCommits, instance: number): void
  /** A transaction that found this count is durable. */
  reached(instance: number, commits: number): void
  close(): void
}

/** Creates the memory of a journal that was opened with `mark`; `file` remembers it beyond this process. */
export function createHighWater(
  { mark: start, process }: { readonly mark: HighWaterMark; readonly process: string },
  file: MarkFile | undefined,
): HighWater {
  const known = new Map(start.commits)
  /** The instance of the last commit. */
  let last: number | undefined
  /** Once commits are gone, others may count the slot up again: what was noticed holds for this process. */
  let damage: AdapterError | undefined
  const knownOf = (instance: number): number => known.get(slotOf(instance)) ?? 0
  const findDamage = ({ commits, before }: FoundCommits, instance: number): string | undefined => {
    let missing = knownOf(instance) + 1 - commits
    if (last !== undefined && slotOf(last) !== slotOf(instance)) {
      missing = Math.max(missing, knownOf(last) - before.commits)
      const marker = before.marker ?? ''
      if (marker.startsWith(`${last}/`) && !marker.startsWith(markerOf(last, process, '')))
        return 'it went back while it was in use, and another process has had the number of this one'
    }
    return missing <= 0 ? undefined : `it went back by ${missing} commit(s) while it was in use`
  }
  return {
    lastSlot: () => (last === undefined ? undefined : slotOf(last)),
    check: (found, instance) => {
      if (damage !== undefined) throw damage
      if (found.identity !== start.identity)
        throw damagedJournal('another journal has taken its place while it was in use')
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
        // The mark lags then, as after a power cut; the next commit writes it again.
      }
    },
    close: () => file?.close(),
  }
}

/** A mark that was read; `unreadable`: the file is there and holds something else. */
type FoundMark = HighWaterMark | 'missing' | 'unreadable'

/** A mark file that is open for writing. */
export interface MarkFile {
  /** Overwrites the mark without an fsync: after a power cut it may lag behind the journal, but it never leads. */
  write(mark: HighWaterMark): void
  close(): void
}

/** Where the mark of an SQLite journal lies: beside its file. */
export const markFileOf = (path: string): string => `${path}.mark`

/** One sector of a disk, so that a mark is on it as a whole or not at all. */
const LENGTH = 512
const TITLE = 'markbridge journal mark'

/** Reads the mark at `path`. Another process may be writing it: inconsistent content is read again. */
export function readMark(path: string): FoundMark {
  for (let attempt = 0; attempt < 5; attempt += 1) {
    const text = readText(path)
    if (text === undefined) return 'missing'
    const mark = parseMark(text)
    if (mark !== undefined) return mark
  }
  return 'unreadable'
}

/** Opens the mark file at `path`; one that is not there is created with `mark`, and is on the disk before this returns. */
export function openMarkFile(path: string, mark: HighWaterMark): MarkFile {
  if (!existsSync(path)) createMark(path, mark)
  const file = openSync(path, constants.O_RDWR)
  const write = (next: HighWaterMark): void => {
    writeSync(file, formatMark(next), 0, LENGTH, 0)
  }
  return { write, close: () => closeSync(file) }
}

/** Creates the file with all that it holds, so that no other instance reads one that is empty. The first of several wins. */
function createMark(path: string, mark: HighWaterMark): void {
  const draft = `${path}.${randomBytes(8).toString('hex')}`
  writeFileSync(draft, formatMark(mark), { mode: 0o600, flag: 'wx', flush: true })
  try {
    linkSync(draft, path)
  } catch (error) {
    // A file system without hard links.
    if (!isErrno(error, 'EEXIST')) renameSync(draft, path)
  } finally {
    rmSync(draft, { force: true })
  }
  syncFolder(dirname(path))
}

/** Replaces the mark at `path`, durably. */
export function replaceMark(path: string, mark: HighWaterMark): void {
  const file = openMarkFile(path, mark)
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

/** The error of a mark file that the user of the adapter may not read or write, or whose place is none for a file. */
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
  const folder = openSync(path, 'r')
  try {
    fsyncSync(folder)
  } finally {
    closeSync(folder)
  }
}

/**
 * What is wrong with the file of an SQLite journal before it is opened, which would create it: it is gone or empty, and its mark
 * says that it was not. Undefined: nothing that can be seen from outside.
 */
export function findMissingFile(path: string, mark: string): string | undefined {
  if (readMark(mark) === 'missing') return undefined
  const size = statSync(path, { throwIfNoEntry: false })?.size
  if (size === undefined) return `the file is gone, and its mark file ${mark} is there`
  return size === 0 ? `the file is empty, and its mark file ${mark} is there` : undefined
}
