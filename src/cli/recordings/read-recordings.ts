import type { Dirent, Stats } from 'node:fs'
import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'

import { AdapterError, describeFileError } from '../../errors.ts'

/** A file, or standard input. */
export interface RecordedFile {
  /** The displayed name: a path, or `-`. */
  readonly name: string
  readonly read: () => Promise<Buffer>
  /** Why an entry of a folder is skipped, if it is not a regular file. */
  readonly skip?: string
}

/** The recordings of a path: one file, or those of a folder. */
export interface RecordedFiles {
  readonly isFolder: boolean
  readonly files: readonly RecordedFile[]
}

/**
 * Finds the recordings of `path`: standard input for `-`, the file itself, or all files of a folder and its subfolders, sorted by
 * name, without hidden ones. Symbolic links to files are followed, those to folders are not.
 * Error: `ADP_USAGE` for a missing path, and for a pipe or device, whose read may never end.
 */
export async function findRecordings(path: string): Promise<RecordedFiles> {
  if (path === '-') return { isFolder: false, files: [{ name: '-', read: readStandardInput }] }
  const entry = await stat(path).catch((cause: unknown) => {
    throw unreadable(path, cause)
  })
  if (entry.isDirectory()) {
    const files = await listFolder(path, await readFolder(path))
    return { isFolder: true, files: files.sort((one, other) => (one.name < other.name ? -1 : 1)) }
  }
  if (!entry.isFile()) {
    throw new AdapterError(
      'ADP_USAGE',
      `${path} is ${kindOfEntry(entry)}. Name a regular file or a folder, or - to read standard input.`,
    )
  }
  return { isFolder: false, files: [toFile(path)] }
}

const toFile = (name: string): RecordedFile => ({ name, read: () => readGivenFile(name) })

const readFolder = (path: string): Promise<Dirent[]> =>
  readdir(path, { withFileTypes: true }).catch((cause: unknown) => {
    throw unreadable(path, cause)
  })

async function listFolder(path: string, entries: readonly Dirent[]): Promise<RecordedFile[]> {
  const files: RecordedFile[] = []
  for (const entry of entries.filter(({ name }) => !name.startsWith('.'))) {
    const name = join(path, entry.name)
    if (!entry.isDirectory()) files.push(await toEntry(name, entry))
    else {
      const below = await readFolder(name).catch(() => undefined)
      // The error belongs to this entry alone, so it is thrown when the entry is read.
      if (below === undefined) files.push({ name, read: () => readFolder(name).then(() => Buffer.alloc(0)) })
      else for (const file of await listFolder(name, below)) files.push(file)
    }
  }
  return files
}

/** Reads an entry other than a folder. A dangling link is skipped; a link whose target cannot be examined is an error. */
async function toEntry(name: string, entry: Dirent): Promise<RecordedFile> {
  if (!entry.isSymbolicLink())
    return entry.isFile() ? toFile(name) : { ...toFile(name), skip: kindOfEntry(entry) }
  try {
    const target = await stat(name)
    if (target.isFile()) return toFile(name)
    return { ...toFile(name), skip: `a symbolic link to ${kindOfEntry(target)}` }
  } catch (cause) {
    const leadsNowhere = cause instanceof Error && 'code' in cause && lost.has(String(cause.code))
    return { ...toFile(name), ...(leadsNowhere ? { skip: 'a symbolic link that leads nowhere' } : {}) }
  }
}

const lost: ReadonlySet<string> = new Set(['ENOENT', 'ENOTDIR', 'ELOOP'])

function kindOfEntry(entry: Dirent | Stats): string {
  if (entry.isDirectory()) return 'a folder'
  if (entry.isFIFO()) return 'a named pipe'
  if (entry.isSocket()) return 'a socket'
  return entry.isCharacterDevice() || entry.isBlockDevice() ? 'a device' : 'not a regular file'
}

/** Reads a file that an argument names, or standard input for `-`. Error: `ADP_USAGE` when it cannot be read. */
export async function readGivenFile(path: string): Promise<Buffer> {
  if (path === '-') return readStandardInput()
  try {
    return await readFile(path)
  } catch (cause) {
    throw unreadable(path, cause)
  }
}

async function readStandardInput(): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of process.stdin as AsyncIterable<Buffer>) chunks.push(chunk)
  return Buffer.concat(chunks)
}

function unreadable(path: string, cause: unknown): AdapterError {
  return new AdapterError('ADP_USAGE', `${path} cannot be read: ${describeFileError(cause)}.`, { cause })
}
