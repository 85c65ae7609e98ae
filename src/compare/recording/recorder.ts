import type { Slices, Slicing } from '../../http/slices.ts'
import type { Partner } from '../../partners/partner.ts'
import { createProcessorShare, type ProcessorShareOptions } from '../processor-share.ts'
import type { WireExchange } from '../wire-exchange.ts'
import { type RecordedExchange, toRecorded } from './exchange.ts'
import { maskExchange } from './mask-credentials.ts'
import { type Pseudonyms, pseudonymise } from './pseudonyms.ts'
import { toFiles, type RecordingFiles } from './recording-files.ts'
import type { RecordingStore } from './recording-store.ts'
import { toV3Script } from './v3-script.ts'

/** What became of an exchange. `unfit`: it cannot be pseudonymised without becoming another case. `stopped`: a write failed before. */
export type RecordFate = 'recorded' | 'dropped' | 'unfit' | 'tooLarge' | 'stopped'

/** A folder that takes exchanges in one form. */
export interface RecordingTarget {
  /** Writes an exchange without its credentials; never rejects. `partner`: its settings decide what V3 gets; `work` ends before the disk is waited for. */
  keep(
    exchange: RecordedExchange,
    partner: Partner,
    work: RecordingWork,
  ): Promise<Exclude<RecordFate, 'dropped'>>
  /** True once writing has failed: nothing more is taken. */
  isStopped(): boolean
  /** Removes what is past its retention period. */
  removeOld(): Promise<void>
}

interface RecordingTargetOptions {
  /** Opens the folder; called once, at once. */
  readonly open: () => Promise<RecordingStore>
  /** Undefined: the store encrypts. */
  readonly pseudonyms: Pseudonyms | undefined
  /** Called once, with what opening or writing failed with. */
  readonly onStopped: (cause: unknown) => void
}

/** Creates the target. What cannot be written, as on a full disk, stops it: clients must not pay for trying. */
export function createRecordingTarget(options: RecordingTargetOptions): RecordingTarget {
  const { open, pseudonyms, onStopped } = options
  let isStopped = false
  const stop = (cause: unknown): undefined => {
    if (!isStopped) onStopped(cause)
    isStopped = true
  }
  const store = open().catch(stop)
  return {
    isStopped: () => isStopped,
    removeOld: async () => {
      const own = await store
      if (!isStopped) await own?.removeOld().catch(stop)
    },
    keep: async (exchange, partner, work) => {
      const own = await store
      if (own === undefined || isStopped) return 'stopped'
      const shown = await toShown(exchange, partner, pseudonyms, work)
      work.end()
      if (shown === undefined) return 'unfit'
      try {
        const stored = await own.add(shown.files, shown.receivedMs)
        return stored === 'kept' ? 'recorded' : stored
      } catch (cause) {
        stop(cause)
        return 'stopped'
      }
    },
  }
}

async function toShown(
  exchange: RecordedExchange,
  partner: Partner,
  pseudonyms: Pseudonyms | undefined,
  slices: Slices,
): Promise<{ readonly files: RecordingFiles; readonly receivedMs: number } | undefined> {
  try {
    const masked = await maskExchange(exchange, slices)
    const shown = pseudonyms === undefined ? masked : await pseudonymise(pseudonyms, masked, slices)
    if (shown === undefined) return undefined
    const own = pseudonyms === undefined ? partner : withoutNames(partner)
    const v3 = await toV3Script(shown, own, slices)
    return { files: toFiles(shown, own, v3, pseudonyms !== undefined), receivedMs: shown.receivedMs }
  } catch {
    // The texts of clients may be anything; without its error, which may hold one.
    return undefined
  }
}

/** Settings that name an installation: its hosts have pseudonyms, and the name of its program would give it away. */
function withoutNames(partner: Partner): Partner {
  const { mapping } = partner
  const changeProcessName = mapping.changeProcessName === null ? null : 'Markbridge'
  return { ...partner, serviceHosts: undefined, mapping: { ...mapping, changeProcessName } }
}

/** The slices of the work on one exchange. */
export interface RecordingWork extends Slices {
  /** Ends the last slice: what follows waits for the disk. */
  end(): void
}

/** Begins work in the slices that the requests of a process have, where nothing goes first. */
export function beginInSlices(slicing: Slicing): () => Promise<RecordingWork> {
  return async () => {
    const slices = slicing.open()
    await slices.next()
    return { ...slices, end: () => undefined }
  }
}

/** A request of a client that arrives in a turn of a recording waits for its end. */
const TURN_MS = 0.5
/** Of the time that the process would be idle. */
const SHARE_OF_IDLE = 1 / 3
/** Of all time, so that recordings go on where clients leave none idle. */
const SHARE_OF_ALL = 1 / 50

/** Begins work in turns of half a millisecond, in the part of the processor's time that recordings may use: clients of the same process go first. */
export function beginInSpareTime(
  options: Omit<ProcessorShareOptions, 'earnMs'> & {
    /** Time that the process was idle since its start, ms. */
    readonly idleMs: () => number
  },
): () => Promise<RecordingWork> {
  const { clock, idleMs } = options
  let seenIdleMs = idleMs()
  const share = createProcessorShare({
    ...options,
    earnMs: (elapsedMs) => {
      const newIdleMs = idleMs() - seenIdleMs
      seenIdleMs += newIdleMs
      return newIdleMs * SHARE_OF_IDLE + elapsedMs * SHARE_OF_ALL
    },
  })
  return async () => {
    await share.begin()
    let beganMs = clock.nowMs()
    const end = (): void => share.spent(clock.nowMs() - beganMs)
    return {
      end,
      spend: () => clock.nowMs() - beganMs >= TURN_MS,
      next: async () => {
        end()
        await share.begin()
        beganMs = clock.nowMs()
      },
    }
  }
}

/** An exchange that is to be recorded. */
export interface OfferedRecording {
  readonly target: RecordingTarget
  readonly partner: Partner
  /** As it was on the wire, or as it was recorded before. */
  readonly exchange: WireExchange | RecordedExchange
  readonly onFate: (fate: RecordFate) => void
}

/** Keeps exchanges, off the way of their clients; offered = the sum of all fates. */
export interface Recorder {
  /** Never waits and never throws: what finds no room is dropped. */
  offer(offered: OfferedRecording): void
  /** Exchanges that wait. */
  waiting(): number
  /** Resolves once all that was taken is written. */
  idle(): Promise<void>
  /** Takes no more; resolves once all that was taken is written, or `late` resolves: then what still waits is dropped. */
  close(late?: Promise<void>): Promise<void>
}

interface RecorderOptions {
  /** Resolves when the work on one exchange may begin. */
  readonly begin: () => Promise<RecordingWork>
  /** Larger exchanges are not recorded: the work would hold others up. */
  readonly maxExchangeBytes: number
}

const MAX_WAITING = 256
const MAX_BYTES = 33_554_432

/** Creates the recorder: a queue bounded in number and bytes, from which one exchange after the other is written. */
export function createRecorder({ begin, maxExchangeBytes }: RecorderOptions): Recorder {
  const waiting: OfferedRecording[] = []
  let bytes = 0
  let isClosed = false
  let running: Promise<void> | undefined

  const keep = async (offered: OfferedRecording, work: RecordingWork): Promise<RecordFate> => {
    const { target, partner, exchange } = offered
    if (target.isStopped()) return 'stopped'
    const plain = 'kind' in exchange ? exchange : await toRecorded(exchange, maxExchangeBytes)
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
      const isFull = isClosed || waiting.length >= MAX_WAITING || bytes + size > MAX_BYTES
      if (offered.target.isStopped()) offered.onFate('stopped')
      else if (size > maxExchangeBytes) offered.onFate('tooLarge')
      else if (isFull) offered.onFate('dropped')
      else {
        bytes += size
        waiting.push(offered)
        running ??= run()
      }
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

function sizeOf({ request, reply }: WireExchange): number {
  return (request.body?.length ?? 0) + (reply.body?.length ?? 0)
}
