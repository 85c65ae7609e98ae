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

interface RunSummary extends Pick<
  RunDocument,
  'partner' | 'from' | 'to' | 'complete' | 'startedAt' | 'endedAt' | 'offered' | 'compared'
> {
  readonly outcome: RunOutcome
}

export interface ListedRun {
  readonly run: string
  /** The summary of the run, or `undefined` if the file is not a run document. */
  readonly summary?: RunSummary
  readonly fault?: string
}

const runId = /^[\w][\w.-]*$/

/** Returns true if a text is the id of a run, and false if it is a path (with a folder or the extension `.json`). */
export const isRunId = (text: string): boolean => runId.test(text) && !text.endsWith('.json')

/**
 * Opens a folder of runs. A missing folder counts as empty. A file is read again only after a change. A file over `maxBytes` is not a run.
 */
export function openRuns(folder: string, maxBytes = MAX_DOCUMENT_BYTES) {
  const known = new Map<string, { readonly version: string; readonly listed: ListedRun }>()
  const namesOf = async (): Promise<readonly string[]> => {
    const names = await readdir(folder).catch((cause: unknown) => {
      if (errorCodeOf(cause) === 'ENOENT') return []
      throw unusable(`${folder} cannot be read`, cause, ' Check the path and the permissions.')
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
    /** Lists the runs, newest first, and then the files that are not runs. */
    list: async (): Promise<readonly ListedRun[]> => {
      const found: ListedRun[] = []
      for (const file of await namesOf()) if (file.endsWith('.json')) found.push(await listOne(file))
      const endOf = ({ summary }: ListedRun): number => Date.parse(summary?.endedAt ?? '1970-01-01')
      return found.sort((one, other) => endOf(other) - endOf(one))
    },
    /** Reads the document of a run. Throws `ADP_USAGE` if the folder has no run with this id. */
    read: (run: string): Promise<RunDocument> =>
      readRunFile(join(folder, `${run}.json`), `The run ${run}`, maxBytes),
  }
}

const summaryOf = (document: RunDocument): RunSummary => {
  const { partner, from, to, complete, startedAt, endedAt, offered, compared } = document
  return { partner, from, to, complete, startedAt, endedAt, offered, compared, outcome: outcomeOf(document) }
}

/** Reads a run document. `name` appears in error messages. Throws `ADP_USAGE` if the file is missing or is not a run document. */
export async function readRunFile(
  path: string,
  name: string,
  maxBytes = MAX_DOCUMENT_BYTES,
): Promise<RunDocument> {
  const fail = (cause: unknown): never => {
    const more = ' Use compare report --list to see the available runs.'
    throw unusable(`${name} cannot be read from ${path}`, cause, more)
  }
  const { size } = await stat(path).catch(fail)
  if (size > maxBytes)
    throw new AdapterError(
      'ADP_USAGE',
      `${name} cannot be read: it is larger than ${maxBytes / 1_048_576} MiB. Use the file that compare run wrote.`,
    )
  return readRunDocument(await readFile(path, 'utf8').catch(fail), name)
}

const unusable = (what: string, cause: unknown, more = ''): AdapterError =>
  new AdapterError('ADP_USAGE', `${what}: ${describeFileError(cause)}.${more}`, { cause })
