import { AdapterError } from '../../errors.ts'
import type { Clock } from '../../clock.ts'
import type { StageEntry } from '../live-stages.ts'

/**
 * Why a write waits. `changing`: a change would put its unit on the other side; `stale`: the stage must be read first; `asking`: the
 * store must have been asked, whether it answers or not.
 */
export type Wait = 'changing' | 'stale' | 'asking'

/** Lets a write in, or says why it has to wait; `last`: it has waited for as long as it may. */
export type Attempt = (last: boolean) => StageEntry | Wait

export interface HeldWrites {
  /** Resolves once an attempt lets the write in. Errors: `ADP_STAGE_UNKNOWN`; `ADP_OVERLOADED`: too many wait. */
  wait(partner: string, attempt: Attempt, first: Wait): Promise<StageEntry>
  /** Tries all that wait, in the order in which they came. */
  retry(): void
  count(partner?: string): number
  /** Refuses all that wait. */
  stop(): void
}

export interface HeldWritesOptions {
  readonly clock: Clock
  readonly max: number
  /** How long a write waits, by the reason, from its beginning. */
  readonly limitsMs: Readonly<Record<Wait, number>>
  readonly events: {
    held(event: { readonly partner: string; readonly reason: Wait }): void
    refused(event: { readonly partner: string; readonly reason: Wait | 'overloaded' }): void
  }
}

interface Held {
  readonly partner: string
  readonly attempt: Attempt
  readonly sinceMs: number
  readonly resolve: (entry: StageEntry) => void
  readonly reject: (error: AdapterError) => void
  reason: Wait
  cancel: () => void
}

const texts: Readonly<Record<Wait, string>> = {
  changing: 'The stage of this client is being changed, and the change did not end in time.',
  stale: 'The stage of this client cannot be read from the journal.',
  asking: 'The stage of this client cannot be read from the journal.',
}

/** Creates the place where writes wait. */
export function createHeldWrites({ clock, max, limitsMs, events }: HeldWritesOptions): HeldWrites {
  const all = new Set<Held>()
  const refuse = (held: Held, reason: Wait): void => {
    all.delete(held)
    held.cancel()
    events.refused({ partner: held.partner, reason })
    held.reject(unknownStage(reason))
  }
  const admit = (held: Held, entry: StageEntry): void => {
    all.delete(held)
    held.cancel()
    held.resolve(entry)
  }
  const arm = (held: Held): void => {
    held.cancel()
    const leftMs = Math.max(0, held.sinceMs + limitsMs[held.reason] - clock.nowMs())
    held.cancel = clock.after(leftMs, () => {
      const result = held.attempt(true)
      if (typeof result === 'string') refuse(held, result)
      else admit(held, result)
    })
  }
  const retry = (): void => {
    for (const held of all) {
      const result = held.attempt(false)
      if (typeof result !== 'string') admit(held, result)
      else if (result !== held.reason) {
        held.reason = result
        arm(held)
      }
    }
  }
  return {
    wait: (partner, attempt, reason) => {
      if (all.size >= max) {
        events.refused({ partner, reason: 'overloaded' })
        return Promise.reject(
          new AdapterError('ADP_OVERLOADED', 'Too many writes wait for a change of their stage.'),
        )
      }
      events.held({ partner, reason })
      return new Promise((resolve, reject) => {
        const sinceMs = clock.nowMs()
        const held: Held = { partner, attempt, sinceMs, resolve, reject, reason, cancel: () => undefined }
        all.add(held)
        arm(held)
      })
    },
    retry,
    count: (partner) =>
      partner === undefined ? all.size : [...all].filter((held) => held.partner === partner).length,
    stop: () => {
      for (const held of all) refuse(held, 'stale')
    },
  }
}

/** The error of a request whose side is not known. */
export function unknownStage(reason: Wait): AdapterError {
  return new AdapterError('ADP_STAGE_UNKNOWN', `${texts[reason]} Nothing was sent; send it again later.`)
}
