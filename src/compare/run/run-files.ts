import { randomBytes } from 'node:crypto'
import { mkdir, readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'

import { AdapterError, describeFileError } from '../../errors.ts'
import { replaceFile } from '../replace-file.ts'

/** The files of runs in one folder: `<run>.json` and, until it is complete, `<run>.checkpoint.json`. They hold no value of a record. */
export interface RunFiles {
  /** Writes the document of a run and returns its path. */
  writeDocument(run: string, text: string): Promise<string>
  writeCheckpoint(run: string, text: string): Promise<void>
  removeCheckpoint(run: string): Promise<void>
  /** The checkpoint of a run, or the newest one; undefined: there is none. */
  readCheckpoint(run: string | undefined): Promise<string | undefined>
}

const CHECKPOINT = '.checkpoint.json'
/** Names sort by the time at which their runs began. */
const RUN = /^run-\d{8}-\d{6}-[0-9a-f]{4}$/

/** Names a run that begins at a time: `run-20260907-063012-9f3c`. */
export function newRunName(wallMs: number): string {
  const [day = '', time = ''] = new Date(wallMs)
    .toISOString()
    .replace(/[-:]|\..*$/g, '')
    .split('T')
  return `run-${day}-${time}-${randomBytes(2).toString('hex')}`
}

/** True for a name that `newRunName` gave. */
export function isRunName(text: string): boolean {
  return RUN.test(text)
}

/** Opens the files of runs; the folder is made when it is written to. Errors: `ADP_CONFIGURATION` for a folder that cannot be used. */
export function openRunFiles(folder: string): RunFiles {
  const write = async (name: string, text: string): Promise<string> => {
    const path = join(folder, name)
    try {
      await mkdir(folder, { recursive: true })
      await replaceFile(path, text)
      return path
    } catch (cause) {
      throw unusable(path, 'written', cause)
    }
  }
  return {
    writeDocument: (run, text) => write(`${run}.json`, text),
    writeCheckpoint: async (run, text) => {
      await write(run + CHECKPOINT, text)
    },
    removeCheckpoint: (run) => rm(join(folder, run + CHECKPOINT), { force: true }),
    readCheckpoint: async (run) => {
      const name = run ?? (await newestOf(folder))
      if (name === undefined) return undefined
      const path = join(folder, name + CHECKPOINT)
      try {
        return await readFile(path, 'utf8')
      } catch (cause) {
        if (isMissing(cause)) return undefined
        throw unusable(path, 'read', cause)
      }
    },
  }
}

async function newestOf(folder: string): Promise<string | undefined> {
  const names = await readdir(folder).catch((cause: unknown) => {
    if (isMissing(cause)) return []
    throw unusable(folder, 'read', cause)
  })
  const runs = names
    .filter((name) => name.endsWith(CHECKPOINT))
    .map((name) => name.slice(0, -CHECKPOINT.length))
  return runs.filter(isRunName).sort().at(-1)
}

const isMissing = (cause: unknown): boolean =>
  cause instanceof Error && 'code' in cause && cause.code === 'ENOENT'

function unusable(path: string, what: 'read' | 'written', cause: unknown): AdapterError {
  return new AdapterError('ADP_CONFIGURATION', `${path} cannot be ${what}: ${describeFileError(cause)}.`, {
    cause,
  })
}
