import { setTimeout as wait } from 'node:timers/promises'
import { parentPort, workerData } from 'node:worker_threads'

import { backgroundClock } from '../../clock.ts'
import { createProcessorShare, takePriority, usedMs } from '../../compare/processor-share.ts'
import { type ConsoleEngine, openConsoleEngine } from '../../console/data/engine.ts'
import { AdapterError } from '../../errors.ts'
import type { Unsealing } from '../../journal/index.ts'
import { connect } from '../remote-calls.ts'
import { readRequest } from './read-request.ts'

export interface ConsoleThreadStart {
  readonly url: string
  readonly how: Unsealing
  readonly nice: number
}

export interface ConsoleThreadCalls extends Omit<ConsoleEngine, 'work' | 'start' | 'close' | 'servedMs'> {
  /** Stops the thread. Resolves once the thread no longer uses the journal. */
  readonly close: () => Promise<void>
}

export interface ConsoleMainCalls {
  /** Reports that the store of the console cannot be opened or written. The thread retries. */
  readonly failed: () => void
}

const RETRY_MS = 5_000

if (parentPort === null)
  throw new AdapterError('ADP_INTERNAL', 'This file runs only as the console thread of the adapter.')
const start = workerData as ConsoleThreadStart
takePriority(start.nice)
const main = connect<ConsoleMainCalls>(parentPort)
const onFailure = (): void => void main.call('failed').catch(() => undefined)
const stop = new AbortController()
let engine: ConsoleEngine | undefined
/**
 * Returns the used processor time in milliseconds, of this thread and of all others. The work that PostgreSQL does for this thread counts
 * as work of this thread.
 */
const workedMs = () => {
  const { own, others } = usedMs()
  return { own: own + (engine?.servedMs() ?? 0), others }
}
const share = createProcessorShare(backgroundClock, workedMs, stop.signal)
const begin = (): Promise<void> => share.begin()

/** Opens the engine. Retries until the opening succeeds, because the adapter may create the journal later. */
async function open(): Promise<void> {
  let failures = 0
  while (engine === undefined && !stop.signal.aborted)
    try {
      engine = await openConsoleEngine({ url: start.url, how: start.how, readRequest, begin, onFailure })
      engine.start()
    } catch {
      // Reports only the second failure, because processes that start at the same moment may lock the file or be creating the journal.
      failures += 1
      if (failures === 2) onFailure()
      await wait(RETRY_MS, undefined, { signal: stop.signal }).catch(() => undefined)
    }
}

const opening = open()

async function ask<Result>(question: (opened: ConsoleEngine) => Promise<Result>): Promise<Result> {
  if (engine !== undefined) return question(engine)
  throw new AdapterError(
    'ADP_JOURNAL_UNAVAILABLE',
    'The journal of the console is not open yet. Nothing was read or changed. Try again in a few seconds.',
  )
}

const calls: ConsoleThreadCalls = {
  overview: (...args) => ask((opened) => opened.overview(...args)),
  hash: (...args) => ask((opened) => opened.hash(...args)),
  search: (...args) => ask((opened) => opened.search(...args)),
  batch: (...args) => ask((opened) => opened.batch(...args)),
  records: (...args) => ask((opened) => opened.records(...args)),
  waiting: (...args) => ask((opened) => opened.waiting(...args)),
  readKept: (...args) => ask((opened) => opened.readKept(...args)),
  keepSteps: (...args) => ask((opened) => opened.keepSteps(...args)),
  keepFigures: (...args) => ask((opened) => opened.keepFigures(...args)),
  close: async () => {
    stop.abort()
    await opening
    await engine?.close()
  },
}
main.answer({ ...calls })
