import { once } from 'node:events'
import { Worker } from 'node:worker_threads'

import { createApp, parseConfig } from '../../../src/index.ts'
import { createLogger } from '../../../src/observability/logger.ts'
import type { HostileRequest } from './hostile-request.ts'
import type { OutsideReply, OutsideResult, OutsideRun } from './outside-world.ts'

/** The processor time that this thread spent in turns of its event loop. */
interface TurnCost {
  /** Processor time of the longest turn, in milliseconds. */
  readonly longestMs: number
  /** Processor time of all turns, in milliseconds. */
  readonly totalMs: number
}

/** The effect of a hostile request on other clients. */
export interface Hold extends TurnCost {
  readonly name: string
  readonly replies: readonly OutsideReply[]
  /** The number of another client's requests that the adapter answered during the hostile request. */
  readonly neighbours: number
  readonly wallMs: number
}

/** An adapter in this thread. The clients and the service of the adapter run in another thread. */
export interface HoldMeter {
  measure(hostile: HostileRequest): Promise<Hold>
  close(): Promise<void>
}

export async function openHoldMeter(journal: string, settings: object = {}): Promise<HoldMeter> {
  const world = new Worker(new URL('outside-world.ts', import.meta.url))
  const [v3] = (await once(world, 'message')) as [number]
  const config = parseConfig({
    listen: { port: 0 },
    journal: { url: journal },
    upstreams: { v3: { baseUrl: `http://127.0.0.1:${v3}` } },
    partners: [{ id: 'default', match: { any: true } }],
    ...settings,
  })
  const app = createApp(config, { logger: createLogger('error', { write: () => undefined }) })
  const { port } = await app.listen()
  return {
    measure: async ({ name, requests, page, drips = false }) => {
      const run: OutsideRun = { port, requests, page, drips }
      // The bodies are copied to the other thread before the first turn is measured.
      world.postMessage(run)
      const take = watchTurns()
      const startedMs = performance.now()
      const [result] = (await once(world, 'message')) as [OutsideResult]
      const wallMs = performance.now() - startedMs
      return { name, ...result, ...take(), wallMs }
    },
    close: async () => {
      await world.terminate()
      await app.close()
    },
  }
}

/**
 * Watches the turns of the event loop until the returned function is called. Each turn is measured in processor time of this thread and not
 * in elapsed time, so that other programs on the machine have no influence. The work of the garbage collector in this thread counts.
 */
export function watchTurns(): () => TurnCost {
  const startedMs = threadMs()
  let longestMs = 0
  let before = startedMs
  let next: NodeJS.Immediate
  const turn = (): void => {
    const now = threadMs()
    longestMs = Math.max(longestMs, now - before)
    before = now
    next = setImmediate(turn)
  }
  next = setImmediate(turn)
  return () => {
    clearImmediate(next)
    const now = threadMs()
    return { longestMs: Math.max(longestMs, now - before), totalMs: now - startedMs }
  }
}

function threadMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1_000
}
