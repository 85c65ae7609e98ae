import { readdir, readFile, stat } from 'node:fs/promises'
import { join, relative } from 'node:path'

import { AdapterError } from '../../errors.ts'

/** A file, or standard input. */
export interface RecordedFile {
  /** As it is shown: a path, or `-`. */
  readonly name: string
  readonly read: () => Promise<Buffer>
}

/** What a path stands for: one recording, or a folder of them. */
export interface RecordedFiles {
  readonly isFolder: boolean
  readonly files: readonly RecordedFile[]
}

/**
 * Finds the recordings that `path` stands for: standard input for `-`, the file itself, or all files of a folder and of those in it,
 * in the order of their names, without hidden ones. Error: `ADP_USAGE` for a path that is not there.
 */
export async function findRecordings(path: string): Promise<RecordedFiles> {
  if (path === '-') return { isFolder: false, files: [{ name: '-', read: readStandardInput }] }
  const isFolder = await stat(path).then(
    (entry) => entry.isDirectory(),
    (cause: unknown) => {
      throw unreadable(path, cause)
    },
  )
  const names = isFolder ? await listFolder(path) : [path]
  return { isFolder, files: names.map((name) => ({ name, read: () => readRecordedFile(name) })) }
}

async function listFolder(path: string): Promise<string[]> {
  const entries = await readdir(path, { withFileTypes: true, recursive: true })
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((name) => !/(?:^|[\\/])\./.test(relative(path, name)))
    .sort()
}

/** Reads a file, or standard input for `-`. Error: `ADP_USAGE` when it cannot be read. */
export async function readRecordedFile(path: string): Promise<Buffer> {
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
  return new AdapterError('ADP_USAGE', `The file ${path} cannot be read.`, { cause })
}
