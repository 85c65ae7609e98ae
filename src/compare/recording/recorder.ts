import type { Slices } from '../../http/slices.ts'
import type { Partner } from '../../partners/partner.ts'
import type { RecordedExchange } from './exchange.ts'
import { maskExchange } from './mask-credentials.ts'
import { type Pseudonyms, pseudonymise } from './pseudonyms.ts'
import { toFiles, type RecordingFiles } from './recording-files.ts'
import type { RecordingStore } from './recording-store.ts'
import { toV3Script } from './v3-script.ts'

/** What became of an exchange. `unfit`: it cannot be pseudonymised without becoming another case. `stopped`: a write failed before. */
export type RecordFate = 'recorded' | 'dropped' | 'unfit' | 'tooLarge' | 'stopped'

/** A folder that takes exchanges in one form. */
export interface RecordingTarget {
  /** Writes an exchange without its credentials; never rejects. `partner`: its settings decide what V3 gets. */
  keep(exchange: RecordedExchange, partner: Partner, slices: Slices): Promise<RecordFate>
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
    keep: async (exchange, partner, slices) => {
      const own = await store
      if (own === undefined || isStopped) return 'stopped'
      const shown = await toShown(exchange, partner, pseudonyms, slices)
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
