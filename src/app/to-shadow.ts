import { createReadAlong, createShadowOffers, type ShadowOffers } from '../compare/live/index.ts'
import type { Slicing } from '../http/slices.ts'
import { type Events, framesOf } from '../observability/events.ts'
import type { Metrics } from '../observability/metrics.ts'
import type { ReadPlanner } from '../translate/index.ts'
import type { BatchLimits } from '../v2/index.ts'

export interface ShadowParts {
  readonly limits: () => BatchLimits
  readonly planner: ReadPlanner
  readonly slicing: Slicing
  readonly metrics: Pick<Metrics, 'shadowOffered' | 'shadowRead'>
  readonly events: Pick<Events, 'internalError'>
}

/** The queue of `shadow` with its listener, which counts what it cannot read. */
export function toShadow({ limits, planner, slicing, metrics, events }: ShadowParts): ShadowOffers {
  const readAlong = createReadAlong({ limits, planner, open: () => slicing.open() })
  return createShadowOffers({
    listen: async (exchange) => {
      const { records, requests, refused, fields, replies } = await readAlong(exchange)
      const unread = { request: requests, record: refused, field: fields, reply: replies }
      metrics.shadowRead({ partner: exchange.partner.id, records, unread })
    },
    onOffer: metrics.shadowOffered,
    onFailed: (cause) =>
      events.internalError({
        errorName: cause instanceof Error ? cause.name : typeof cause,
        stack: cause instanceof Error ? framesOf(cause) : [],
      }),
    later: slicing.later,
  })
}
