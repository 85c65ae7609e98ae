import { createHash } from 'node:crypto'
import { mkdir, open, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'

import { backgroundClock } from '../clock.ts'
import { type Config, type JournalConfig, journalUrlOf } from '../config/index.ts'
import { AdapterError } from '../errors.ts'
import type { Journal } from '../journal/index.ts'
import type { Events } from '../observability/events.ts'
import type { Metrics } from '../observability/metrics.ts'
import type { PartnerRegistry } from '../partners/index.ts'
import {
  createStoredStages,
  type KeptStages,
  type RolloutStore,
  type StoredStages,
} from '../rollout/index.ts'

/** The file of the last stages; undefined: no folder is named, and the journal is not a file that one could lie beside. */
export function stageFileOf(journal: JournalConfig): string | undefined {
  const url = journalUrlOf(journal)
  if (journal.stateDir !== undefined) return join(journal.stateDir, 'journal.stages')
  return url.startsWith('sqlite:') ? `${url.slice('sqlite:'.length)}.stages` : undefined
}

/** The file of the last change that was seen in a PostgreSQL journal; undefined: no folder is named. */
export function markFileOf({ stateDir }: Pick<JournalConfig, 'stateDir'>): string | undefined {
  return stateDir === undefined ? undefined : join(stateDir, 'journal.mark')
}

/**
 * The journal whose stages a named folder keeps: a digest of where it is, without credentials. Undefined: the file moves with an SQLite
 * journal, or nothing is kept.
 */
function ownerOf(journal: JournalConfig): string | undefined {
  if (journal.stateDir === undefined) return undefined
  return createHash('sha256')
    .update(placeOf(journalUrlOf(journal)))
    .digest('hex')
}

function placeOf(url: string): string {
  if (url.startsWith('sqlite:')) return `sqlite:${resolve(url.slice('sqlite:'.length))}`
  const { hostname, port, pathname, searchParams } = new URL(url)
  return `postgres:${searchParams.get('host') ?? hostname}:${searchParams.get('port') ?? (port || '5432')}${pathname}`
}

/** Checks, before anything is opened, that the file of the last stages is not that of another journal. Error: `ADP_CONFIGURATION`. */
export async function expectOwnStageFile(journal: JournalConfig): Promise<void> {
  try {
    await createStageFile(journal).load()
  } catch (cause) {
    // A file that cannot be read counts as none.
    if (cause instanceof AdapterError) throw cause
  }
}

/** The first line of a file in a folder that was named. */
const OWNER = /^journal ([0-9a-f]{64})\n/

/**
 * Keeps the last stages in a file that is replaced as a whole; without a place for one nothing is kept. Error: `ADP_CONFIGURATION` where the
 * file has those of another journal.
 */
export function createStageFile(journal: JournalConfig): KeptStages {
  const [path, own] = [stageFileOf(journal), ownerOf(journal)]
  if (path === undefined) return { load: () => Promise.resolve(undefined), save: () => Promise.resolve() }
  const load = async (): Promise<string | undefined> => {
    const kept = await readFile(path, 'utf8').catch((error: unknown) => {
      if (isMissing(error)) return undefined
      throw error
    })
    const [line = '', owner] = OWNER.exec(kept ?? '') ?? []
    if (owner !== undefined && own !== undefined && owner !== own) throw ofAnother(path)
    return kept?.slice(line.length)
  }
  return {
    load,
    save: async (text) => {
      // Another adapter may have been started with the same file since.
      await load()
      const folder = dirname(path)
      await mkdir(folder, { recursive: true })
      // Processes on one journal may share the file: each writes a draft of its own, and the last one to rename wins.
      const draft = `${path}.${process.pid}`
      try {
        const content = own === undefined ? text : `journal ${own}\n${text}`
        await writeFile(draft, content, { mode: 0o600, flush: true })
        await rename(draft, path)
      } catch (error) {
        await rm(draft, { force: true })
        throw error
      }
      await syncFolder(folder)
    },
  }
}

const ofAnother = (path: string): AdapterError =>
  new AdapterError(
    'ADP_CONFIGURATION',
    `${path} keeps the stages of another journal: give each adapter a folder of its own (journal.stateDir). Delete the file where the address of the journal was changed.`,
  )

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r')
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}

const isMissing = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && error.code === 'ENOENT'

interface StageParts {
  readonly config: Config
  readonly stores: { readonly rollout: RolloutStore; secret(): Uint8Array | undefined }
  readonly journal: Pick<Journal, 'lease' | 'renewLease'>
  readonly registry: Pick<PartnerRegistry, 'partners'>
  readonly events: Events
  readonly metrics: Metrics
}

/**
 * Others count with an instance for 1.2 leases after its last renewal, and it holds its lease for 0.8 of one: so long after a read under a
 * lease that was held then they still count with it, also where it stands still.
 */
const COUNTED_LEASES = 0.38

/** Creates the stages of one instance, over the store in its journal. */
export function createStages({
  config,
  stores,
  journal,
  registry,
  events,
  metrics,
}: StageParts): StoredStages {
  return createStoredStages({
    store: stores.rollout,
    instance: () => journal.lease(),
    renewLease: () => journal.renewLease(),
    clock: backgroundClock,
    kept: createStageFile(config.journal),
    secret: () => stores.secret(),
    partners: () => registry.partners(),
    events,
    metrics,
    staleAfterMs: config.tuning.leaseMs * COUNTED_LEASES,
    drainMs: config.tuning.stageDrainMs,
    resendWindowMs: config.rollout.resendWindowMs,
  })
}
