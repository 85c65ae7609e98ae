import { randomBytes } from 'node:crypto'
import { mkdir, open, readdir, readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'

import * as z from 'zod'

import { AdapterError, describeFileError, errorCodeOf } from '../../errors.ts'
import { countsForm } from '../tally.ts'

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
export const isRunName = (text: string): boolean => RUN.test(text)

const count = z.int().nonnegative()
const kind = z.enum(['marks', 'registrations'])
const checkpointForm = z.object({
  schema: z.literal(4),
  run: z.string().regex(RUN),
  startedAt: z.string(),
  partner: z.string().nullable(),
  /** First and last day, `YYYY-MM-DD`. */
  from: z.string(),
  to: z.string(),
  /** Days. */
  progress: z.object({ done: count, total: count }),
  /** SHA-256 over the options: another selection of records cannot be added to this one. */
  options: z.string(),
  position: z.object({ kind, list: count, fromMs: count, days: count }),
  /** Windows that failed; they are read again. */
  failed: z.array(z.object({ kind, list: count, fromMs: count, toMs: count })),
  counts: countsForm,
})

/** How far a run has come, without any value of a record: all that `--resume` needs. */
export type Checkpoint = z.infer<typeof checkpointForm>

export type RunFiles = ReturnType<typeof openRunFiles>

/** The end of the name of a checkpoint. */
export const CHECKPOINT = '.checkpoint.json'

/**
 * Opens the files of runs in one folder: `<run>.json` and, until it is complete, `<run>.checkpoint.json`. They hold no value of a record. The
 * folder is made when it is written to. Errors: `ADP_CONFIGURATION` for a folder that cannot be used.
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
    /** Writes the document of a run and returns its path. */
    writeDocument: (run: string, text: string) => write(`${run}.json`, text),
    writeCheckpoint: async (checkpoint: Omit<Checkpoint, 'schema'>): Promise<void> => {
      await write(checkpoint.run + CHECKPOINT, JSON.stringify({ schema: 4, ...checkpoint }))
    },
    removeCheckpoint: (run: string) => rm(join(folder, run + CHECKPOINT), { force: true }),
    /** The checkpoint of a run, or the newest one; undefined: there is none. Error: `ADP_USAGE` for one that is damaged or of another version. */
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
      'The checkpoint is damaged, or of another version. Begin the run again without --resume.',
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

/**
 * Writes a file that its owner alone may read, in place of one of any mode or of a link. A reader of the file sees the old text or the new
 * one, also after a power cut.
 */
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
