import type { Clock } from '../../clock.ts'
import { acceptsPlaintext, type Config, journalKeysOf, journalUrlOf } from '../../config/index.ts'
import { createFigureDeltas } from '../../console/data/figures.ts'
import type { ConsoleData } from '../../console/data/port.ts'
import { createStepQueue, observeJournal } from '../../console/data/steps.ts'
import { AdapterError } from '../../errors.ts'
import type { Duty } from '../../heartbeat.ts'
import { type Journal, type JournalInspector, openInspector } from '../../journal/index.ts'
import type { Metrics } from '../../observability/metrics.ts'
import { endThread, startThread, type Thread } from '../remote-calls.ts'
import { highWaterFileOf } from '../stages.ts'
import type { ConsoleMainCalls, ConsoleThreadCalls, ConsoleThreadStart } from './thread.ts'

interface ConsoleDataOptions extends Pick<Config, 'journal'> {
  readonly clock: Clock
  /** Called if the store of the console cannot be opened or written. Meanwhile the pages of the console are outdated or empty. */
  readonly onFailure: () => void
}

export type OpenedConsoleData = ConsoleData & ConsoleThreadCalls

/** The nice value of the thread. With this value the console answers under load, but clients come first. */
const NICE = 10
const STOP_MS = 5_000
const RESTART_MS = 10_000
const SETTINGS = {
  file: new URL(import.meta.url.endsWith('.ts') ? './thread.ts' : './thread.js', import.meta.url),
  name: 'markbridge-console',
  resourceLimits: { maxOldGenerationSizeMb: 256 },
}

/** Opens the data of the console in a thread. Calls reject with `ADP_JOURNAL_UNAVAILABLE` until the database of the journal exists. */
export function openConsoleData({
  journal,
  clock,
  onFailure,
}: ConsoleDataOptions): OpenedConsoleData | undefined {
  const url = journalUrlOf(journal)
  if (url === 'none') return undefined
  const how = { keys: journalKeysOf(journal), plaintextAccepted: acceptsPlaintext(journal) }
  let [thread, isClosed]: [Thread<ConsoleThreadCalls> | undefined, boolean] = [undefined, false]
  const ended = new AdapterError(
    'ADP_JOURNAL_UNAVAILABLE',
    'The thread of the console has ended. No record was lost. A new thread starts within 10 s. Try again then.',
  )
  let cancel = (): void => undefined
  const start = (): void => {
    const workerData: ConsoleThreadStart = { url, how, nice: NICE }
    const calls: ConsoleMainCalls = { failed: onFailure }
    thread = startThread<ConsoleThreadCalls>({ ...SETTINGS, workerData }, calls, ended, () => {
      thread = undefined
      if (isClosed) return
      onFailure()
      cancel = clock.after(RESTART_MS, start)
    })
  }
  start()
  const call: Thread<ConsoleThreadCalls>['call'] = (name, ...args) =>
    thread?.call(name, ...args) ??
    Promise.reject(
      new AdapterError(
        'ADP_JOURNAL_UNAVAILABLE',
        'The thread of the console is not running. Nothing was read or changed. A new thread starts within 10 s. Try again then.',
      ),
    )
  /** Opens the journal for one command of an operator and then closes it, because commands are rare. */
  const command = async <Result>(act: (inspector: JournalInspector) => Promise<Result>): Promise<Result> => {
    const inspector = await openInspector(url, highWaterFileOf(journal))
    return act(inspector).finally(() => inspector.close())
  }
  return {
    overview: (...args) => call('overview', ...args),
    hash: (...args) => call('hash', ...args),
    search: (...args) => call('search', ...args),
    batch: (...args) => call('batch', ...args),
    records: (...args) => call('records', ...args),
    waiting: (...args) => call('waiting', ...args),
    readKept: (...args) => call('readKept', ...args),
    keepSteps: (...args) => call('keepSteps', ...args),
    keepFigures: (...args) => call('keepFigures', ...args),
    retry: async (batch, positions) => {
      const due = await command((inspector) => inspector.makeDue(Date.now(), batch, positions))
      return due.reduce((sum, { positions }) => sum + positions.length, 0)
    },
    dismiss: (batch, positions) => command((inspector) => inspector.dismiss(batch, positions)),
    close: async () => {
      isClosed = true
      cancel()
      if (thread !== undefined) await endThread(thread, STOP_MS, clock)
    },
  }
}

const STEPS_EVERY_MS = 1_000
const FIGURES_EVERY_MS = 10_000

/** Opens the data of the console in an instance. The returned duties store the steps of records and the current figures in this data. */
export function openInstanceConsole(
  options: ConsoleDataOptions,
  metrics: Pick<Metrics, 'read'>,
  nowMs: () => number,
) {
  const data = openConsoleData(options)
  if (data === undefined) return undefined
  const queue = createStepQueue(nowMs)
  const readGrowth = createFigureDeltas(metrics)
  const keepSteps = async (): Promise<void> => {
    const { steps, lost } = queue.take()
    if (steps.length === 0 && lost === 0) return
    await data.keepSteps(steps, lost).catch(() => queue.lose(steps.length + lost))
  }
  const keepFigures = async (): Promise<void> => {
    await data.keepFigures(await readGrowth(), nowMs() - FIGURES_EVERY_MS / 2)
  }
  return {
    data,
    observe: (journal: Journal): Journal => observeJournal(journal, queue),
    duties: [
      { name: 'steps of the console', everyMs: STEPS_EVERY_MS, atStop: true, act: keepSteps },
      {
        name: 'figures of the console',
        everyMs: FIGURES_EVERY_MS,
        firstMs: STEPS_EVERY_MS,
        atStop: true,
        act: keepFigures,
      },
    ] satisfies Duty[],
  }
}
