import type { Partner } from '../../partners/partner.ts'
import type { Exchange } from './exchange.ts'
import type { RecordingTarget } from './recording-target.ts'
import type { RecordingWork } from './recording-work.ts'
import { toExchange, type WireExchange } from './to-exchange.ts'

/** What became of an exchange. `unfit`: it cannot be pseudonymised without becoming another case. `stopped`: a write failed before. */
export type RecordFate = 'recorded' | 'dropped' | 'unfit' | 'tooLarge' | 'stopped'

/** An exchange that is to be recorded. */
export interface OfferedRecording {
  readonly target: RecordingTarget
  readonly partner: Partner
  /** As it was on the wire, or as it was recorded before. */
  readonly exchange: WireExchange | Exchange
  readonly onFate: (fate: RecordFate) => void
}

/** Keeps exchanges, off the way of their clients; offered = the sum of all fates. */
export interface Recorder {
  /** Never waits and never throws: what finds no room is dropped. */
  offer(offered: OfferedRecording): void
  /** Takes memory of the recorder for a copy that is being made; false: not enough is left. */
  hold(bytes: number): boolean
  release(bytes: number): void
  /** Exchanges that wait. */
  waiting(): number
  /** Resolves once all that was taken is written. */
  idle(): Promise<void>
  /** Takes no more; resolves once all that was taken is written, or `late` resolves: then what still waits is dropped. */
  close(late?: Promise<void>): Promise<void>
}

export interface RecorderOptions {
  /** Resolves when the work on one exchange may begin. */
  readonly begin: () => Promise<RecordingWork>
  /** Larger exchanges are not recorded: the work would hold others up. */
  readonly maxExchangeBytes: number
}

const MAX_WAITING = 256
const MAX_BYTES = 33_554_432

/** Creates the recorder: a queue bounded in number and bytes, from which one exchange after the other is written. */
export function createRecorder(options: RecorderOptions): Recorder {
  const { begin, maxExchangeBytes } = options
  const waiting: OfferedRecording[] = []
  let bytes = 0
  let isClosed = false
  let running: Promise<void> | undefined

  const keep = async (
    { target, partner, exchange }: OfferedRecording,
    work: RecordingWork,
  ): Promise<RecordFate> => {
    if (target.isStopped()) return 'stopped'
    const plain = 'request' in exchange ? await toExchange(exchange, maxExchangeBytes) : exchange
    return plain === undefined ? 'tooLarge' : target.keep(plain, partner, work)
  }
  const run = async (): Promise<void> => {
    while (waiting.length > 0) {
      const work = await begin()
      const next = waiting.shift()
      if (next === undefined) break
      next.onFate(await keep(next, work))
      bytes -= sizeOf(next.exchange)
    }
    running = undefined
  }
  return {
    offer: (offered) => {
      const size = sizeOf(offered.exchange)
      if (offered.target.isStopped()) offered.onFate('stopped')
      else if (size > maxExchangeBytes) offered.onFate('tooLarge')
      else if (isClosed || waiting.length >= MAX_WAITING || bytes + size > MAX_BYTES)
        offered.onFate('dropped')
      else {
        bytes += size
        waiting.push(offered)
        running ??= run()
      }
    },
    hold: (count) => {
      if (isClosed || bytes + count > MAX_BYTES) return false
      bytes += count
      return true
    },
    release: (count) => {
      bytes -= count
    },
    waiting: () => waiting.length,
    idle: async () => running,
    close: async (late) => {
      isClosed = true
      const dropped = late?.then(() => {
        for (const { onFate } of waiting.splice(0)) onFate('dropped')
      })
      // A folder that hangs must not keep the adapter from its end.
      await (dropped === undefined ? running : Promise.race([running, dropped]))
    },
  }
}

function sizeOf(exchange: WireExchange | Exchange): number {
  const body = 'request' in exchange ? exchange.request.body : exchange.body
  return (body?.length ?? 0) + (exchange.reply.body?.length ?? 0)
}
