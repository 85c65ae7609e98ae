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
  writeFileSync,
  writeSync,
} from 'node:fs'
import { dirname } from 'node:path'
import { crc32 } from 'node:zlib'

import { type CommitCounts, formatCounts, parseCounts } from './commit-counts.ts'

/** How far a journal had come: which journal it is, and how many groups were committed to it. */
export interface HighWaterMark {
  /** Random, chosen when the journal was created. */
  readonly identity: string
  readonly commits: CommitCounts
}

/** A mark that was read; `unreadable`: the file is there and holds something else. */
export type FoundMark = HighWaterMark | 'missing' | 'unreadable'

/** A mark file that is open for writing. */
export interface MarkFile {
  /** Overwrites the mark without an fsync: after a power cut it may lag behind the journal, but it never leads. */
  write(mark: HighWaterMark): void
  close(): void
}

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
  const text = `${TITLE} ${identity} ${formatCounts(commits)}`
  return Buffer.from(`${text} ${checkOf(text)}`.padEnd(LENGTH - 1) + '\n')
}

function parseMark(line: string): HighWaterMark | undefined {
  const [, text = '', identity = '', commits = '', check] =
    /^(markbridge journal mark ([0-9a-f]{32}) ([\d:,]{1,400})) ([0-9a-f]{8}) *\n$/.exec(line) ?? []
  return check === undefined || check !== checkOf(text)
    ? undefined
    : { identity, commits: parseCounts(commits) }
}

const checkOf = (text: string): string => crc32(text).toString(16).padStart(8, '0')

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, 'latin1')
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return undefined
    throw error
  }
}

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
