import { AdapterError } from '../../errors.ts'
import { damagedJournal } from './damage.ts'
import type { Fault } from './fault.ts'
import type { Store } from './store.ts'

/** Whether the store could be reached the last time that it was asked. */
export interface Availability {
  isAvailable(): boolean
  reached(): void
  failed(fault: Fault): void
  /** Runs a question to the store. Error: `ADP_JOURNAL_UNAVAILABLE` for every error of the driver. */
  ask<Result>(question: () => Promise<Result>): Promise<Result>
}

/** Errors of the journal itself, which say nothing of whether the store can be reached. */
const settled: ReadonlySet<string> = new Set(['ADP_CONFIGURATION', 'ADP_JOURNAL_DAMAGED'])

/** Creates the memory of it; `onChange` is told when it changes, with the reason where it fails. */
export function createAvailability(
  store: Pick<Store, 'toFault'>,
  onChange: (failure: string | undefined) => void,
): Availability {
  let available = true
  const reached = (): void => {
    if (available) return
    available = true
    onChange(undefined)
  }
  const failed = (fault: Fault): void => {
    // Others in the way, or data that cannot be stored: the store itself is well.
    if (!available || fault.contended === true || fault.kind === 'refused') return
    available = false
    onChange(fault.message)
  }
  return {
    isAvailable: () => available,
    reached,
    failed,
    ask: async (question) => {
      try {
        const result = await question()
        reached()
        return result
      } catch (error) {
        if (error instanceof AdapterError && settled.has(error.code)) throw error
        const fault = store.toFault(error)
        failed(fault)
        if (fault.kind === 'damaged') throw damagedJournal(fault.message, error)
        if (fault.kind === 'internal')
          throw new AdapterError('ADP_INTERNAL', `The journal cannot be read: ${fault.message}.`, {
            cause: error,
          })
        const message = `The journal cannot be read: ${fault.message}.`
        throw new AdapterError('ADP_JOURNAL_UNAVAILABLE', message, { cause: error })
      }
    },
  }
}
