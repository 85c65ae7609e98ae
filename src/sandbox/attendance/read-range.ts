import { dayMs } from '../dates.ts'
import { odataError } from '../edge/reply.ts'
import type { Reply } from '../edge/reply.ts'
import type { ReadBounds } from './read-bounds.ts'

/**
 * The limit of an attendance read (service.md 4, 4.1 and 8; service-facts 1 and 2): a range of dates, where the filter
 * gives one, is at most `maxDays` long; where it gives none, the filter names an individual, an event or a record.
 * The reply to a read that asks for more; undefined for one within the limit.
 */
export function refuseWideRange(bounds: ReadBounds, maxDays: number): Reply | undefined {
  const { from, to, learners, events, records } = bounds
  if (from !== undefined && to !== undefined) {
    if (to - from <= maxDays * dayMs) return undefined
    return refusal('DateRangeTooLong', `The filter spans more than ${maxDays} days. Read narrower ranges.`)
  }
  if (events !== undefined || records !== undefined || learners?.size === 1) return undefined
  return refusal(
    'DateRangeRequired',
    `The filter must hold AttendableEventStart within ${maxDays} days, or name one learner, an event or a record.`,
  )
}

const refusal = (code: string, message: string): Reply =>
  odataError(400, code, message, [{ code, message, target: '$filter' }])

/** The reply to a read of attendance records without a filter (service.md 4). */
export const filterRequired = refusal('FilterRequired', 'A read of attendance records needs a $filter.')
