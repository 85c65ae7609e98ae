import { AdapterError } from '../../errors.ts'
import type { Clock } from '../../clock.ts'
import type { StagedRequest, StageEntry } from '../live-stages.ts'

/**
 * Why a write waits. `changing`: a change would put its unit on the other side; `stale`: the stage must be read first; `asking`: the
 * store must have been asked, whether it answers or not.
 */
export type Wait = 'changing' | 'stale' | 'asking'

/** Lets a write in, or says why it has to wait; `last`: it has waited for as long as it may. */
export type Attempt = (last: boolean) => StageEntry | Wait

export interface HeldWrites {
  /**
   * Resolves once an attempt lets the write in. Errors: `ADP_STAGE_UNKNOWN`; `ADP_OVERLOADED`: too many wait, and the latest one of the
   * partner, and of its unit, with the most of them has no place.
   */
  wait(write: HeldWrite, attempt: Attempt, first: Wait): Promise<StageEntry>
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

/** Whose write it is. */
export interface HeldWrite extends Pick<StagedRequest, 'unit'> {
  readonly partner: string
}

interface Held extends HeldWrite {
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
  const refuse = (held: Held, reason: Wait | 'overloaded'): void => {
    all.delete(held)
    held.cancel()
    events.refused({ partner: held.partner, reason })
    held.reject(reason === 'overloaded' ? tooMany() : unknownStage(reason))
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
    wait: ({ partner, unit }, attempt, reason) =>
      new Promise((resolve, reject) => {
        const sinceMs = clock.nowMs()
        const cancel = (): void => undefined
        const held: Held = { partner, unit, attempt, sinceMs, resolve, reject, reason, cancel }
        all.add(held)
        if (all.size > max) {
          const latest = latestOfMost(all)
          if (latest !== undefined) refuse(latest, 'overloaded')
          if (latest === held) return
        }
        events.held({ partner, reason })
        arm(held)
      }),
    retry,
    count: (partner) =>
      partner === undefined ? all.size : [...all].filter((held) => held.partner === partner).length,
    stop: () => {
      for (const held of all) refuse(held, 'stale')
    },
  }
}

/** The latest write of the partner that has the most, and within it of the unit that does; where others have as many, the newest of all. */
function latestOfMost(all: Iterable<Held>): Held | undefined {
  const most = (writes: readonly Held[], nameOf: (held: Held) => string): readonly Held[] =>
    [...Map.groupBy(writes, nameOf).values()].reduce(
      (largest: readonly Held[], group) => (group.length > largest.length ? group : largest),
      [],
    )
  const newestFirst = [...all].reverse()
  const ofPartner = most(newestFirst, ({ partner }) => partner)
  return most(ofPartner, ({ unit }) => unit)[0]
}

const tooMany = (): AdapterError =>
  new AdapterError('ADP_OVERLOADED', 'Too many writes wait for a change of their stage.')

/** The error of a request whose side is not known. */
export function unknownStage(reason: Wait): AdapterError {
  return new AdapterError('ADP_STAGE_UNKNOWN', `${texts[reason]} Nothing was sent; send it again later.`)
}
