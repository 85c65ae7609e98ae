import type { Exchange } from './exchange.ts'
import { maskExchange } from './mask-exchange.ts'
import type { Pseudonyms } from './pseudonyms.ts'
import { pseudonymiseExchange } from './pseudonymise-exchange.ts'
import type { RecordingStore } from './recording-store.ts'
import { toFiles } from './to-files.ts'

/** What became of an exchange. `unfit`: it cannot be pseudonymised without becoming another case. `stopped`: a write failed before. */
export type RecordFate = 'recorded' | 'dropped' | 'unfit' | 'tooLarge' | 'stopped'

/** Keeps exchanges, off the way of their clients; offered = the sum of all fates. */
export interface Recorder {
  /** Never waits and never throws: what finds no room is dropped. */
  offer(exchange: Exchange): void
  /** Resolves once all that was taken is written. */
  idle(): Promise<void>
  /** Takes no more; resolves once all that was taken is written. */
  close(): Promise<void>
}

export interface RecorderOptions {
  readonly store: RecordingStore
  /** Undefined: the store encrypts. */
  readonly pseudonyms: Pseudonyms | undefined
  readonly onFate: (fate: RecordFate) => void
  /** Called once, with what writing failed with: from then on nothing is recorded. */
  readonly onStopped: (cause: unknown) => void
  /** Runs work in a turn of its own. */
  readonly later: (act: () => void) => void
  /** Larger exchanges are not recorded: the work would hold others up. */
  readonly maxExchangeBytes: number
}

const MAX_WAITING = 256
const MAX_BYTES = 33_554_432

/** Creates the recorder: a queue bounded in number and bytes, from which one exchange after the other is written. */
export function createRecorder(options: RecorderOptions): Recorder {
  const { store, pseudonyms, onFate, onStopped, later, maxExchangeBytes } = options
  const pause = (): Promise<void> => new Promise(later)
  const waiting: Exchange[] = []
  let bytes = 0
  let state: 'open' | 'closed' | 'stopped' = 'open'
  let running: Promise<void> | undefined

  const toShow = async (exchange: Exchange): Promise<Exchange | undefined> => {
    try {
      const masked = maskExchange(exchange)
      return pseudonyms === undefined ? masked : await pseudonymiseExchange(pseudonyms, masked, pause)
    } catch {
      // The texts of clients may be anything; without its error, which may hold one.
      return undefined
    }
  }
  const keep = async (exchange: Exchange): Promise<RecordFate> => {
    if (state === 'stopped') return 'stopped'
    const shown = await toShow(exchange)
    if (shown === undefined) return 'unfit'
    try {
      const stored = await store.add(toFiles(shown, pseudonyms !== undefined), shown.receivedMs)
      return stored === 'kept' ? 'recorded' : stored
    } catch (cause) {
      // A disk that is full stays full: clients must not pay for trying.
      state = 'stopped'
      onStopped(cause)
      return 'stopped'
    }
  }
  const run = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      onFate(await keep(next))
      bytes -= sizeOf(next)
      await pause()
    }
    running = undefined
  }
  return {
    offer: (exchange) => {
      const size = sizeOf(exchange)
      if (state === 'stopped') onFate('stopped')
      else if (size > maxExchangeBytes) onFate('tooLarge')
      else if (state === 'closed' || waiting.length >= MAX_WAITING || bytes + size > MAX_BYTES)
        onFate('dropped')
      else {
        bytes += size
        waiting.push(exchange)
        running ??= pause().then(run)
      }
    },
    idle: async () => running,
    close: async () => {
      if (state === 'open') state = 'closed'
      await running
    },
  }
}

const sizeOf = ({ body, reply }: Exchange): number => body.length + reply.body.length
