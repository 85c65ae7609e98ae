import type { Clock } from '../../clock.ts'
import { AdapterError } from '../../errors.ts'
import type { StageEntry } from '../decide.ts'

/**
 * Why a write has to wait. `changing`: a pending change would move its unit. `stale`: the stage must be read first. `asking`: one query
 * of the store must end or time out first.
 */
export type Wait = 'changing' | 'stale' | 'asking'

/** Tries to admit a write, or returns why the write has to wait. `last` is true if the write has waited for the longest time allowed. */
export type Attempt = (last: boolean) => StageEntry | Wait

export interface HeldMetrics {
  stageHeld(event: { readonly partner: string; readonly reason: Wait }): void
  stageRefused(event: { readonly partner: string; readonly reason: Wait | 'overloaded' }): void
}

interface HeldWritesOptions {
  readonly clock: Clock
  readonly max: number
  /** How long a write may wait for each reason, in milliseconds from its arrival. */
  readonly limitsMs: Readonly<Record<Wait, number>>
  readonly metrics: HeldMetrics
}

interface HeldWrite {
  readonly partner: string
  readonly unit: string
}

interface Held extends HeldWrite {
  readonly attempt: Attempt
  readonly sinceMs: number
  readonly end: PromiseWithResolvers<StageEntry>
  reason: Wait
  cancel: () => void
}

export function createHeldWrites({ clock, max, limitsMs, metrics }: HeldWritesOptions) {
  const all = new Set<Held>()
  const refuse = (held: Held, reason: Wait | 'overloaded'): void => {
    all.delete(held)
    held.cancel()
    metrics.stageRefused({ partner: held.partner, reason })
    held.end.reject(reason === 'overloaded' ? tooMany() : unknownStage(reason))
  }
  const admit = (held: Held, entry: StageEntry): void => {
    all.delete(held)
    held.cancel()
    held.end.resolve(entry)
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
  return {
    /**
     * Resolves once the write is admitted. Rejects with `ADP_STAGE_UNKNOWN` if the write waits too long. If too many writes wait, rejects
     * one of them with `ADP_OVERLOADED`: the latest write of the unit with the most waiting writes, within the partner with the most
     * waiting writes.
     */
    wait: (write: HeldWrite, attempt: Attempt, reason: Wait): Promise<StageEntry> => {
      const end = Promise.withResolvers<StageEntry>()
      const held: Held = { ...write, attempt, sinceMs: clock.nowMs(), end, reason, cancel: () => undefined }
      all.add(held)
      const latest = all.size > max ? latestOfMost(all) : undefined
      if (latest !== undefined) refuse(latest, 'overloaded')
      if (latest !== held) {
        metrics.stageHeld({ partner: held.partner, reason })
        arm(held)
      }
      return end.promise
    },
    /** Tries to admit all waiting writes in the order of their arrival. */
    retry: (): void => {
      for (const held of all) {
        const result = held.attempt(false)
        if (typeof result !== 'string') admit(held, result)
        else if (result !== held.reason) {
          held.reason = result
          arm(held)
        }
      }
    },
    count: (partner: string): number => [...all].filter((held) => held.partner === partner).length,
    stop: (): void => {
      for (const held of all) refuse(held, 'stale')
    },
  }
}

/**
 * Returns the latest write of the unit with the most waiting writes, within the partner with the most waiting writes. If several have the
 * most, the group with the newest write is chosen.
 */
function latestOfMost(all: Iterable<Held>): Held | undefined {
  const most = (writes: readonly Held[], groupOf: (held: Held) => string): readonly Held[] =>
    [...Map.groupBy(writes, groupOf).values()].reduce(
      (largest: readonly Held[], group) => (group.length > largest.length ? group : largest),
      [],
    )
  const newestFirst = [...all].reverse()
  const ofPartner = most(newestFirst, ({ partner }) => partner)
  return most(ofPartner, ({ unit }) => unit)[0]
}

const tooMany = (): AdapterError =>
  new AdapterError(
    'ADP_OVERLOADED',
    'Too many writes are waiting for a change of their stage. This write was not sent. Send it again later.',
  )

export function unknownStage(reason: Wait): AdapterError {
  const why =
    reason === 'changing'
      ? 'The stage of this client is being changed, and the change did not end in time.'
      : 'The stage of this client cannot be read from the journal.'
  return new AdapterError(
    'ADP_STAGE_UNKNOWN',
    `${why} This copy of the request was not sent, but an earlier copy may have been applied. Send the same request again later, unchanged.`,
  )
}
