import { readdir, readFile, stat } from 'node:fs/promises'
import { basename, join } from 'node:path'

import { isCompared, toRunDocument } from '../../compare/evidence/index.ts'
import { MAX_DOCUMENT_BYTES, readRunDocument, type RunDocument } from '../../compare/run-document.ts'
import { AdapterError, describeFileError } from '../../errors.ts'
import { expectMayLook, loadTarget, openTargetStore, type RolloutTarget } from '../rollout/open-target.ts'

/** A file of a folder of runs; `fault` says why it is not a run. */
export interface FoundRun {
  readonly name: string
  readonly document?: RunDocument
  readonly fault?: string
}

/** Names that `compare run` gives. A name with a folder, or with another end, is a path. */
const runId = /^[\w][\w.-]*$/

const LIVE = 'live:'

/**
 * Reads a run by its id, by `latest`, by the path of its file, or of `live:<partner>` what live comparison has found. Error: ADP_USAGE where
 * there is no such run, or no run in the file.
 */
export async function readRun(run: string, folder: string, target: RolloutTarget): Promise<RunDocument> {
  if (run.startsWith(LIVE)) return readLiveRun(run.slice(LIVE.length), target)
  if (run === 'latest') {
    const [newest] = (await listRuns(folder)).flatMap(({ document }) => document ?? [])
    if (newest === undefined) throw new AdapterError('ADP_USAGE', `${folder} has no runs.`)
    return newest
  }
  const isId = runId.test(run) && !run.endsWith('.json')
  return readFrom(isId ? join(folder, `${run}.json`) : run, isId ? `The run ${run}` : run)
}

/** The runs of a folder, the newest first, then the files that are none. A folder that does not exist has no runs. */
export async function listRuns(folder: string): Promise<readonly FoundRun[]> {
  const names = await namesIn(folder)
  const found: FoundRun[] = []
  for (const name of names) {
    try {
      found.push({ name, document: await readFrom(join(folder, `${name}.json`), name) })
    } catch (cause) {
      if (!(cause instanceof AdapterError)) throw cause
      found.push({ name, fault: cause.message })
    }
  }
  const endOf = ({ document }: FoundRun): number => Date.parse(document?.endedAt ?? '1970-01-01')
  return found.sort((one, other) => endOf(other) - endOf(one))
}

async function namesIn(folder: string): Promise<readonly string[]> {
  try {
    const names = await readdir(folder)
    return names
      .filter((name) => name.endsWith('.json') && !name.endsWith('.checkpoint.json'))
      .map((name) => basename(name, '.json'))
      .sort()
  } catch (cause) {
    if (cause instanceof Error && 'code' in cause && cause.code === 'ENOENT') return []
    throw new AdapterError('ADP_USAGE', `${folder} cannot be read: ${describeFileError(cause)}.`, { cause })
  }
}

async function readFrom(path: string, name: string): Promise<RunDocument> {
  let content: string
  try {
    const { size } = await stat(path)
    if (size > MAX_DOCUMENT_BYTES)
      throw new AdapterError('ADP_USAGE', `${name} cannot be read: it is larger than a run can be (64 MiB).`)
    content = await readFile(path, 'utf8')
  } catch (cause) {
    if (cause instanceof AdapterError) throw cause
    throw new AdapterError(
      'ADP_USAGE',
      `${name} cannot be read from ${path}: ${describeFileError(cause)}. compare report --list shows the runs there are.`,
      { cause },
    )
  }
  return readRunDocument(content, name)
}

/** What live comparison has found of a partner at its latest stage and share, as the document of a run. Error: `ADP_USAGE` where it is nothing. */
async function readLiveRun(partner: string, target: RolloutTarget): Promise<RunDocument> {
  const config = await loadTarget(target)
  expectMayLook(config)
  const store = await openTargetStore(config)
  try {
    const kept = await store.evidence.read(partner)
    const [latest] = kept.filter(isCompared).toSorted((one, other) => other.lastMs - one.lastMs)
    if (latest !== undefined) return toRunDocument(latest)
    throw new AdapterError(
      'ADP_USAGE',
      'Live comparison has found nothing about this partner yet. It runs at shadow, and later with partners[].check.v2.',
    )
  } finally {
    await store.close()
  }
}
