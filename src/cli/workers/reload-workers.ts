import type { PreparedReload, ReloadTarget } from '../../app/create-reload.ts'
import { type Config, packConfig, planReload } from '../../config/index.ts'
import { AdapterError } from '../../errors.ts'
import type { FromPrimary, FromWorker, PackedError } from './messages.ts'

/** A worker as far as a reload talks to it. */
export interface ReloadPeer {
  readonly id: number
  readonly send: (message: FromPrimary) => void
}

type Answer = Extract<FromWorker, { readonly kind: 'askConfig' | 'prepared' | 'committed' }>

/** The configuration of all workers of one adapter. */
export interface WorkersConfig extends ReloadTarget {
  onMessage(worker: ReloadPeer, message: Answer): void
  onEnd(worker: ReloadPeer): void
}

/** A worker that does not answer within this time makes the reload fail. */
const PREPARE_MS = 30_000
/** The decision is made: a worker that is late takes the configuration when it goes on. */
const COMMIT_MS = 10_000

/**
 * Creates the primary's part of a reload: every worker prepares, then every worker commits, or none does. A worker that starts
 * meanwhile gets its configuration when the reload is over, and so the one that all others have.
 */
export function createWorkersConfig(first: Config, prepareMs = PREPARE_MS): WorkersConfig {
  let current = first
  let reload = 0
  let isReloading = false
  const configured = new Set<ReloadPeer>()
  const starting = new Set<ReloadPeer>()
  const waiting = new Map<ReloadPeer, (error?: PackedError) => void>()

  const giveConfig = (worker: ReloadPeer): void => {
    configured.add(worker)
    worker.send({ kind: 'config', config: packConfig(current) })
  }
  const end = (): void => {
    isReloading = false
    for (const worker of starting) giveConfig(worker)
    starting.clear()
  }
  /** Sends a message and resolves with the answer: an error, or undefined. */
  const request = (
    worker: ReloadPeer,
    message: FromPrimary,
    waitMs: number,
  ): Promise<PackedError | undefined> =>
    new Promise((resolve) => {
      const timer = setTimeout(() => answer(failure(worker, 'did not answer in time')), waitMs)
      const answer = (error?: PackedError): void => {
        clearTimeout(timer)
        waiting.delete(worker)
        resolve(error)
      }
      waiting.set(worker, answer)
      worker.send(message)
    })
  const requestAll = (message: FromPrimary, waitMs: number): Promise<(PackedError | undefined)[]> =>
    Promise.all([...configured].map((worker) => request(worker, message, waitMs)))

  const prepareAll = async (next: Config): Promise<PreparedReload> => {
    const { config, changes } = planReload(current, next)
    reload += 1
    const answers = await requestAll({ kind: 'prepare', reload, config: packConfig(config) }, prepareMs)
    const refusal = answers.find((error) => error !== undefined)
    if (refusal !== undefined)
      throw new AdapterError(refusal.code, refusal.message, { details: refusal.details })
    return {
      changes,
      commit: async () => {
        current = config
        const committed = requestAll({ kind: 'commit', reload }, COMMIT_MS)
        end()
        await committed
      },
    }
  }
  return {
    prepare: async (next) => {
      isReloading = true
      try {
        return await prepareAll(next)
      } catch (cause) {
        end()
        throw cause
      }
    },
    onMessage: (worker, message) => {
      if (message.kind === 'askConfig') {
        if (isReloading) starting.add(worker)
        else giveConfig(worker)
      } else if (message.reload === reload)
        waiting.get(worker)?.('error' in message ? message.error : undefined)
    },
    onEnd: (worker) => {
      configured.delete(worker)
      starting.delete(worker)
      waiting.get(worker)?.(failure(worker, 'ended'))
    },
  }
}

function failure({ id }: ReloadPeer, what: string): PackedError {
  const message = `Worker ${id} ${what}, so no worker took the configuration. Reload again.`
  return { code: 'ADP_INTERNAL', message, details: [] }
}
