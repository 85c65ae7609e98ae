import type { Clock } from '../../clock.ts'
import type { Side } from '../../rollout/index.ts'
import type { Silence } from './messages.ts'

/** Sides that comparisons leave alone, since they have answered 429: also after the end of the thread that knew it. */
export interface Silences {
  note(partner: string, side: Side, forMs: number): void
  /** 0: the side may be asked. */
  leftMs(partner: string, side: Side): number
  list(): readonly Silence[]
}

/** Creates the silences of a process. */
export function createSilences(clock: Clock): Silences {
  const untilMs = new Map<
    string,
    { readonly partner: string; readonly side: Side; readonly untilMs: number }
  >()
  const nameOf = (partner: string, side: Side): string => `${side} ${partner}`
  const leftMs = (partner: string, side: Side): number =>
    Math.max(0, (untilMs.get(nameOf(partner, side))?.untilMs ?? 0) - clock.nowMs())
  return {
    note: (partner, side, forMs) => {
      if (forMs > leftMs(partner, side))
        untilMs.set(nameOf(partner, side), { partner, side, untilMs: clock.nowMs() + forMs })
    },
    leftMs,
    list: () =>
      [...untilMs.values()]
        .map(({ partner, side }) => ({ partner, side, forMs: leftMs(partner, side) }))
        .filter(({ forMs }) => forMs > 0),
  }
}
