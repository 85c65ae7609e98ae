import { randomBytes } from 'node:crypto'

import { type Clock, systemClock, waitFor } from '../clock.ts'
import {
  beginInSpareTime,
  createPseudonyms,
  createRecorder,
  createRecordingTarget,
  openRecordingStore,
  recordedKindOf,
  type RecordFate,
  type RecordingTarget,
} from '../compare/recording/index.ts'
import { changedPaths, type Config, decodeKey, type RecordConfig } from '../config/index.ts'
import type { Slicing } from '../http/slices.ts'
import type { Events } from '../observability/events.ts'
import type { Metrics } from '../observability/metrics.ts'
import type { LiveRecording } from '../proxy/index.ts'

interface RecordingParts {
  readonly config: Pick<Config, 'partners'>
  readonly slicing: Slicing
  readonly metrics: Pick<Metrics, 'recorded' | 'addGauge'>
  readonly events: Pick<Events, 'recordingStopped'>
  /** Its timers do not keep the process alive. */
  readonly clock: Clock
  readonly nowMs: () => number
}

/** Recordings that follow the configuration. */
interface ReloadableRecording extends LiveRecording {
  /** Opens the folders. */
  start(): void
  /** Another configuration is in use. */
  reload(config: Pick<Config, 'partners'>): void
  /** Writes what was taken, for some seconds. */
  close(): Promise<void>
}

/** Larger exchanges are not recorded: clients wait for turns of the work on them. */
const MAX_EXCHANGE_BYTES = 4_194_304
/** Copies of exchanges under way. */
const MAX_COPYING_BYTES = 16_777_216
const HOUR_MS = 3_600_000
/** Recordings are removed after 30 days. */
const MAX_AGE_MS = 30 * 24 * HOUR_MS
/** Time to write what waits when the adapter stops. */
const CLOSE_MS = 5_000

interface Recorded {
  readonly settings: RecordConfig
  readonly target: RecordingTarget
}

/** Records exchanges of the partners that have `record`, off their way. */
export function toRecording(parts: RecordingParts): ReloadableRecording {
  const { config, slicing, metrics, clock } = parts
  const stop = new AbortController()
  const recorder = createRecorder({
    begin: beginInSpareTime({
      // A stop waits for its timers.
      clock: systemClock,
      idleMs: () => performance.eventLoopUtilization().idle,
      later: slicing.later,
      stopped: stop.signal,
    }),
    maxExchangeBytes: MAX_EXCHANGE_BYTES,
  })
  let copying = 0
  let { partners } = config
  let recorded = new Map<string, Recorded>()
  let cancel = (): void => undefined
  const open = (): void => {
    const before = recorded
    recorded = new Map(
      partners.flatMap(({ id, record }) => {
        if (record === undefined) return []
        const own = before.get(id)
        // A reload starts one again that has stopped.
        const isSame = own?.target.isStopped() === false && changedPaths(own.settings, record).length === 0
        return [[id, isSame ? own : { settings: record, target: toTarget(id, record, parts) }] as const]
      }),
    )
  }
  const removeOld = (): void => {
    for (const { target } of recorded.values()) void target.removeOld()
    cancel = clock.after(HOUR_MS, removeOld)
  }
  metrics.addGauge(
    'record_stopped',
    'Processes in which the recording of a partner has stopped.',
    () => [...recorded].map(([partner, { target }]) => ({ partner, value: target.isStopped() ? 1 : 0 })),
    { labels: ['partner'] },
  )
  metrics.addGauge('record_waiting', 'Exchanges that wait to be recorded.', () => recorder.waiting())
  return {
    open: (partner, method, path) => {
      const own = recorded.get(partner.id)
      if (own === undefined || recordedKindOf(method, path) === undefined) return undefined
      const onFate = (fate: RecordFate | 'incomplete'): void =>
        metrics.recorded({ partner: partner.id, fate })
      let held = 0
      let isFull = false
      return {
        hold: (bytes) => {
          if (isFull || held + bytes > MAX_EXCHANGE_BYTES) return false
          isFull = copying + bytes > MAX_COPYING_BYTES
          if (isFull) return false
          held += bytes
          copying += bytes
          return true
        },
        end: (copied) => {
          copying -= held
          if (copied === undefined) onFate('incomplete')
          else if (isFull) onFate('dropped')
          else recorder.offer({ target: own.target, partner, exchange: copied, onFate })
        },
      }
    },
    start: () => {
      open()
      cancel = clock.after(HOUR_MS, removeOld)
    },
    reload: (next) => {
      partners = next.partners
      open()
    },
    close: async () => {
      cancel()
      stop.abort()
      await recorder.close(waitFor(CLOSE_MS, clock))
    },
  }
}

function toTarget(partner: string, record: RecordConfig, { events, nowMs }: RecordingParts): RecordingTarget {
  const { to, key, pseudonyms, maxBytes } = record
  const storeKey = key && decodeKey(key)
  return createRecordingTarget({
    open: () => openRecordingStore({ folder: to, key: storeKey, maxBytes, maxAgeMs: MAX_AGE_MS, nowMs }),
    pseudonyms: pseudonyms === undefined ? undefined : createPseudonyms(pseudonymKeyOf(pseudonyms)),
    onStopped: (cause) => events.recordingStopped({ partner, code: codeOf(cause) }),
  })
}

/** Without a key of its own, one that ends with the process: afterwards no one can undo a pseudonym. */
function pseudonymKeyOf(pseudonyms: NonNullable<RecordConfig['pseudonyms']>): Uint8Array {
  return (pseudonyms === true ? undefined : decodeKey(pseudonyms.key)) ?? randomBytes(32)
}

/** Without the message, which may name what is recorded. */
function codeOf(cause: unknown): string {
  return cause instanceof Error && 'code' in cause ? String(cause.code) : 'unknown'
}
