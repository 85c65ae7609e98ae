import { readdir, readFile, stat } from 'node:fs/promises'
import { basename, join } from 'node:path'

import { AdapterError, describeFileError, errorCodeOf } from '../../errors.ts'
import {
  MAX_DOCUMENT_BYTES,
  outcomeOf,
  readRunDocument,
  type RunDocument,
  type RunOutcome,
} from '../run-document.ts'
import { toDocument } from '../tally.ts'
import { CHECKPOINT, openRunFiles } from './run-files.ts'

/** What a list says of a run. */
interface RunSummary extends Pick<
  RunDocument,
  'partner' | 'from' | 'to' | 'complete' | 'startedAt' | 'endedAt' | 'offered' | 'compared'
> {
  readonly outcome: RunOutcome
}

/** A file of a folder of runs. */
export interface ListedRun {
  /** The name of the file without its extension: the id of the run, unless the file was renamed. */
  readonly run: string
  /** Undefined: the file is no run. */
  readonly summary?: RunSummary
  readonly fault?: string
}

/** A run without a document, or one that was taken up again since: it goes on, or was killed. */
export interface UnfinishedRun {
  readonly run: string
  /** Days. */
  readonly progress: { readonly done: number; readonly total: number }
  /** When its last step ended, milliseconds since the epoch. */
  readonly lastStepMs: number
  /** What it has found so far, as the document of a run that was stopped. */
  readonly document: RunDocument
}

/** Names that `compare run` gives, or a user. */
const runId = /^[\w][\w.-]*$/

/** True for a name of a run; one with a folder, or with the end of a file, is a path. */
export const isRunId = (text: string): boolean => runId.test(text) && !text.endsWith('.json')

/**
 * Opens a folder for reading its runs; a file that has not changed is read once, and one of more than `maxBytes` is no run. A folder that does
 * not exist has no runs.
 */
export function openRuns(folder: string, maxBytes = MAX_DOCUMENT_BYTES) {
  const files = openRunFiles(folder)
  const known = new Map<string, { readonly version: string; readonly listed: ListedRun }>()
  const namesOf = async (): Promise<readonly string[]> => {
    const names = await readdir(folder).catch((cause: unknown) => {
      if (errorCodeOf(cause) === 'ENOENT') return []
      throw unusable(`${folder} cannot be read`, cause)
    })
    return names.sort()
  }
  const listOne = async (file: string): Promise<ListedRun> => {
    const run = basename(file, '.json')
    const { mtimeMs, size } = await stat(join(folder, file)).catch(() => ({ mtimeMs: 0, size: 0 }))
    const version = `${mtimeMs} ${size}`
    const last = known.get(file)
    if (last?.version === version) return last.listed
    const listed = await readRunFile(join(folder, file), run, maxBytes).then(
      (document) => ({ run, summary: summaryOf(document) }),
      (cause: unknown) => {
        if (!(cause instanceof AdapterError)) throw cause
        return { run, fault: cause.message.replace(/^.* cannot be read: /, '') }
      },
    )
    known.set(file, { version, listed })
    return listed
  }
  return {
    /** The newest first, then the files that are none. */
    list: async (): Promise<readonly ListedRun[]> => {
      const found: ListedRun[] = []
      for (const file of await namesOf())
        if (file.endsWith('.json') && !file.endsWith(CHECKPOINT)) found.push(await listOne(file))
      const endOf = ({ summary }: ListedRun): number => Date.parse(summary?.endedAt ?? '1970-01-01')
      return found.sort((one, other) => endOf(other) - endOf(one))
    },
    /** Newest first. */
    listUnfinished: async (): Promise<readonly UnfinishedRun[]> => {
      const found: UnfinishedRun[] = []
      for (const file of await namesOf()) {
        if (!file.endsWith(CHECKPOINT)) continue
        const run = file.slice(0, -CHECKPOINT.length)
        const [steps, document] = await Promise.all(
          [file, `${run}.json`].map((name) => stat(join(folder, name)).catch(() => undefined)),
        )
        if (steps === undefined || steps.mtimeMs <= (document?.mtimeMs ?? 0)) continue
        const checkpoint = await files.readCheckpoint(run).catch(() => undefined)
        if (checkpoint === undefined) continue
        const { startedAt, partner, from, to, progress, counts } = checkpoint
        const lastStepMs = Math.floor(steps.mtimeMs)
        const header = {
          ...({ run, kind: 'reads', partner, startedAt, complete: false, noise: false } as const),
          endedAt: new Date(lastStepMs).toISOString(),
        }
        found.push({ run, progress, lastStepMs, document: toDocument({ ...header, from, to }, counts) })
      }
      return found.toReversed()
    },
    /** The document of a run by its id. Error: `ADP_USAGE` where there is none. */
    read: (run: string): Promise<RunDocument> =>
      readRunFile(join(folder, `${run}.json`), `The run ${run}`, maxBytes),
  }
}

const summaryOf = (document: RunDocument): RunSummary => {
  const { partner, from, to, complete, startedAt, endedAt, offered, compared } = document
  return { partner, from, to, complete, startedAt, endedAt, offered, compared, outcome: outcomeOf(document) }
}

/** Reads the file of a run; `name` is for messages. Error: `ADP_USAGE` where there is none, or no run in it. */
export async function readRunFile(
  path: string,
  name: string,
  maxBytes = MAX_DOCUMENT_BYTES,
): Promise<RunDocument> {
  const fail = (cause: unknown): never => {
    const more = ' compare report --list shows the runs there are.'
    throw unusable(`${name} cannot be read from ${path}`, cause, more)
  }
  const { size } = await stat(path).catch(fail)
  if (size > maxBytes)
    throw new AdapterError(
      'ADP_USAGE',
      `${name} cannot be read: it is larger than ${maxBytes / 1_048_576} MiB.`,
    )
  return readRunDocument(await readFile(path, 'utf8').catch(fail), name)
}

const unusable = (what: string, cause: unknown, more = ''): AdapterError =>
  new AdapterError('ADP_USAGE', `${what}: ${describeFileError(cause)}.${more}`, { cause })
