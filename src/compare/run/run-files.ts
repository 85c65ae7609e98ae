import { randomBytes } from 'node:crypto'
import { mkdir, open, readdir, readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'

import * as z from 'zod'

import { AdapterError, describeFileError, errorCodeOf } from '../../errors.ts'
import { countsForm } from '../tally.ts'

/** Names sort by the time at which the runs began. */
const RUN = /^run-\d{8}-\d{6}-[0-9a-f]{4}$/

/** Returns a name such as `run-20260907-063012-9f3c`. */
export function newRunName(wallMs: number): string {
  const [day = '', time = ''] = new Date(wallMs)
    .toISOString()
    .replace(/[-:]|\..*$/g, '')
    .split('T')
  return `run-${day}-${time}-${randomBytes(2).toString('hex')}`
}

export const isRunName = (text: string): boolean => RUN.test(text)

const count = z.int().nonnegative()
const kind = z.enum(['marks', 'registrations'])
const checkpointForm = z.object({
  schema: z.literal(4),
  run: z.string().regex(RUN),
  startedAt: z.string(),
  partner: z.string().nullable(),
  /** The first and the last day, as `YYYY-MM-DD`. */
  from: z.string(),
  to: z.string(),
  progress: z.object({ done: count, total: count }),
  /** The SHA-256 of the options. A resumed run must select the same records. */
  options: z.string(),
  position: z.object({ kind, list: count, fromMs: count, days: count }),
  /** Failed windows, which are read again. */
  failed: z.array(z.object({ kind, list: count, fromMs: count, toMs: count })),
  counts: countsForm,
})

/** The state that `--resume` needs, without any value of a record. */
export type Checkpoint = z.infer<typeof checkpointForm>

export type RunFiles = ReturnType<typeof openRunFiles>

export const CHECKPOINT = '.checkpoint.json'

/**
 * Opens the files of runs in one folder: `<run>.json` and, until the run is complete, `<run>.checkpoint.json`. Writing creates the folder.
 * Throws `ADP_CONFIGURATION` if the folder cannot be used.
 */
export function openRunFiles(folder: string) {
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
    writeDocument: (run: string, text: string) => write(`${run}.json`, text),
    writeCheckpoint: async (checkpoint: Omit<Checkpoint, 'schema'>): Promise<void> => {
      await write(checkpoint.run + CHECKPOINT, JSON.stringify({ schema: 4, ...checkpoint }))
    },
    removeCheckpoint: (run: string) => rm(join(folder, run + CHECKPOINT), { force: true }),
    /** Reads the checkpoint of a run or the newest one; `undefined` if there is none. Throws `ADP_USAGE` if it is damaged or outdated. */
    readCheckpoint: async (run: string | undefined): Promise<Checkpoint | undefined> => {
      const name = run ?? (await newestOf(folder))
      if (name === undefined) return undefined
      const path = join(folder, name + CHECKPOINT)
      const text = await readFile(path, 'utf8').catch(unlessMissing(path, undefined))
      return text === undefined ? undefined : parseCheckpoint(text)
    },
  }
}

function parseCheckpoint(text: string): Checkpoint {
  try {
    return checkpointForm.parse(JSON.parse(text))
  } catch (cause) {
    throw new AdapterError(
      'ADP_USAGE',
      'The checkpoint is damaged or has another version. The run was not resumed. Start again without --resume.',
      { cause },
    )
  }
}

async function newestOf(folder: string): Promise<string | undefined> {
  const names = await readdir(folder).catch(unlessMissing(folder, []))
  const runs = names
    .filter((name) => name.endsWith(CHECKPOINT))
    .map((name) => name.slice(0, -CHECKPOINT.length))
  return runs.filter(isRunName).sort().at(-1)
}

const unlessMissing =
  <Value>(path: string, value: Value) =>
  (cause: unknown): Value => {
    if (errorCodeOf(cause) === 'ENOENT') return value
    throw unusable(path, 'read', cause)
  }

function unusable(path: string, what: 'read' | 'written', cause: unknown): AdapterError {
  return new AdapterError('ADP_CONFIGURATION', `${path} cannot be ${what}: ${describeFileError(cause)}.`, {
    cause,
  })
}

/** Replaces a file or a symbolic link atomically, even across a power failure. Only the owner can read the new file. */
export async function replaceFile(path: string, text: string): Promise<void> {
  const draft = `${path}.${randomBytes(6).toString('hex')}`
  try {
    const file = await open(draft, 'wx', 0o600)
    try {
      await file.writeFile(text)
      await file.sync()
    } finally {
      await file.close()
    }
    await rename(draft, path)
  } catch (cause) {
    await rm(draft, { force: true })
    throw cause
  }
}
