import type { Slices } from '../../http/slices.ts'
import type { Partner } from '../../partners/partner.ts'
import type { Exchange } from './exchange.ts'
import { maskExchange } from './mask-exchange.ts'
import { pseudonymiseExchange } from './pseudonymise-exchange.ts'
import type { Pseudonyms } from './pseudonyms.ts'
import type { RecordingStore } from './recording-store.ts'
import type { RecordingWork } from './recording-work.ts'
import { toFiles } from './to-files.ts'
import { toV3Script } from './to-v3-script.ts'

/** A folder that takes exchanges in one form. */
export interface RecordingTarget {
  /** Writes an exchange without its credentials; never rejects. `partner`: its settings decide what V3 gets; `work` ends before the disk is waited for. */
  keep(
    exchange: Exchange,
    partner: Partner,
    work: RecordingWork,
  ): Promise<'recorded' | 'unfit' | 'tooLarge' | 'stopped'>
  /** True once writing has failed: nothing more is taken. */
  isStopped(): boolean
  /** Removes what is over its age. */
  removeOld(): Promise<void>
}

export interface RecordingTargetOptions {
  /** Opens the folder; called once, at once. */
  readonly open: () => Promise<RecordingStore>
  /** Undefined: the store encrypts. */
  readonly pseudonyms: Pseudonyms | undefined
  /** Called once, with what opening or writing failed with. */
  readonly onStopped: (cause: unknown) => void
}

/** Creates the target. What cannot be written, as on a full disk, stops it: clients must not pay for trying. */
export function createRecordingTarget({
  open,
  pseudonyms,
  onStopped,
}: RecordingTargetOptions): RecordingTarget {
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
      const files = await toShownFiles(exchange, partner, pseudonyms, work)
      work.end()
      if (files === undefined) return 'unfit'
      try {
        const stored = await own.add(files.files, files.receivedMs)
        return stored === 'kept' ? 'recorded' : stored
      } catch (cause) {
        stop(cause)
        return 'stopped'
      }
    },
  }
}

async function toShownFiles(
  exchange: Exchange,
  partner: Partner,
  pseudonyms: Pseudonyms | undefined,
  slices: Slices,
) {
  try {
    const masked = await maskExchange(exchange, slices)
    const shown = pseudonyms === undefined ? masked : await pseudonymiseExchange(pseudonyms, masked, slices)
    if (shown === undefined) return undefined
    const own = pseudonyms === undefined ? partner : withoutNames(partner)
    const v3 = await toV3Script(shown, own, slices)
    const options = { pseudonyms: pseudonyms !== undefined, partner: own, v3 }
    return { files: toFiles(shown, options), receivedMs: shown.receivedMs }
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
