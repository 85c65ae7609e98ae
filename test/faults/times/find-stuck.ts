import type { EffectEntry } from '../../../src/sandbox/control/routes.ts'
import { type Finding, describeEvents } from '../check/finding.ts'
import { isFinal, type WriteHistory } from '../load/history.ts'
import { nameIn } from '../load/write.ts'
import type { ForwardLog } from '../proxy/forwards.ts'
import type { Unheard } from './unheard.ts'

export interface Watched {
  /** The requests to the adapters. */
  readonly arrivals: ForwardLog
  /** The requests to the service. */
  readonly log: ForwardLog
  readonly unheard: Unheard
  /** True if the service keeps only one mark of a learner and session. */
  readonly replaces: boolean
}

/** The time in milliseconds between two requests below which either may have begun first. */
const SAME_TIME_MS = 150

/**
 * Finds writes without a final answer that a sound service should have finished long ago. A write may stay unknown if a newer write was
 * recorded, or if there is a mark whose answer reached no client. The newest write of its learner and session may not stay unknown.
 */
export function findStuck(
  writes: readonly WriteHistory[],
  effects: readonly EffectEntry[],
  { arrivals, unheard, replaces }: Watched,
): readonly WriteHistory[] {
  const recorded = new Set(effects.map(({ comment }) => nameIn(comment)))
  const arrivalsOf = ({ write }: WriteHistory): number[] =>
    (arrivals.forwards().get(write.name) ?? []).map(({ atMs = 0 }) => atMs)
  const isNewer = (other: WriteHistory, own: WriteHistory): boolean =>
    other.batch === own.batch
      ? other.position > own.position
      : Math.max(...arrivalsOf(other)) > Math.min(...arrivalsOf(own)) - SAME_TIME_MS
  const mayStay = (own: WriteHistory): boolean => {
    if (own.answers.at(-1)?.answer.kind !== 'unknown') return false
    const last = effects.findLast((effect) => isOf(own, effect))
    const others = writes.filter((other) => other !== own && isOf(own, other.write))
    const shown = replaces ? others.filter(({ write }) => write.name === nameIn(last?.comment)) : others
    return (
      shown.some((other) => unheard.hides(own, other, !replaces)) ||
      others.some((other) => recorded.has(other.write.name) && isNewer(other, own))
    )
  }
  return writes.filter((own) => !isFinal(own) && !mayStay(own))
}

/** The number of writes that a finding describes before and after its own write. */
const NEIGHBOURS = 4

export function toUnsettled({ write: { name: of }, answers }: WriteHistory): Finding {
  const last = answers.at(-1)?.answer.kind ?? 'nothing'
  return { kind: 'unsettled', of, because: `last answer ${last}, although the service works again` }
}

/** Describes the events of the writes of the same learner and session around the write of this name. */
export function describeNeighbours(
  name: string,
  writes: readonly WriteHistory[],
  effects: readonly EffectEntry[],
  { log }: Pick<Watched, 'log'>,
): string {
  const own = writes.find(({ write }) => write.name === name)
  if (own === undefined) return ''
  const sameKey = writes.filter(({ write }) => isOf(own, write))
  const at = sameKey.indexOf(own)
  const neighbours = sameKey.slice(Math.max(0, at - NEIGHBOURS), at + NEIGHBOURS + 1).map((each) => {
    const its = effects.filter(({ comment }) => nameIn(comment) === each.write.name)
    const forwards = log.forwards().get(each.write.name)
    return `${each.write.name} ${describeEvents({ own: each, effects: its, forwards })}`
  })
  return neighbours.join('\n    ')
}

function isOf({ write }: WriteHistory, mark: { readonly learner: string; readonly event: string }): boolean {
  return mark.learner === write.learner && mark.event === write.event
}
