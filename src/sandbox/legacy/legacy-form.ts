import { z } from 'zod'

import type { Reply } from '../http/reply.ts'
import type { ServiceRequest } from '../http/request.ts'

/** The schema of the body of `PUT /_sandbox/legacy-form`. The defaults are the form that service.md describes. */
export const legacyFormSchema = z.strictObject({
  /** The layout of a batch reply. `auto` selects the nested layout for a client that names an OData version or accepts multipart/mixed. */
  layout: z.enum(['flat', 'nested', 'auto']).default('flat'),
  /** True if records and pages are wrapped in the member `d`, as in OData V2. */
  dataEnvelope: z.boolean().default(false),
  /** True if the parts of a batch reply have the media type `application/http; msgtype=response`. */
  msgtypeResponse: z.boolean().default(false),
  /**
   * What happens to a batch whose ids in the header and the body differ: `post` applies its records, and `drop` discards them. The reply is
   * the same.
   */
  mismatch: z.enum(['post', 'drop']).default('post'),
  /** Messages by error code, which replace the messages of the sandbox. */
  errorMessages: z.record(z.string(), z.string()).default({}),
})

/** The configurable points of the V2 format: those in which installations differ, and those that service.md does not specify. */
type LegacyForm = z.output<typeof legacyFormSchema>

export function layoutFor({ layout }: LegacyForm, { header }: Pick<ServiceRequest, 'header'>) {
  if (layout !== 'auto') return layout
  const namesVersion = ['odata-version', 'odata-maxversion'].some((name) => header(name) !== undefined)
  return namesVersion || /\bmultipart\/mixed\b/i.test(header('accept') ?? '') ? 'nested' : 'flat'
}

/** Converts a reply to the configured form of V2. Wraps records and pages in the envelope, but not counts and raw values. */
export function toLegacyForm(reply: Reply, { dataEnvelope }: LegacyForm): Reply {
  const isJson = reply.headers['Content-Type']?.startsWith('application/json') === true
  if (!dataEnvelope || reply.status !== 200 || !isJson) return reply
  const members = JSON.parse(reply.body.toString()) as Record<string, unknown>
  const d = Array.isArray(members['value']) ? toOldPage(members) : members
  return { ...reply, body: JSON.stringify({ d }) }
}

/** Renames the members of a page to the names in OData V2 (OData V2 JSON format 4 and 8), in which the count is a string. */
function toOldPage(page: Readonly<Record<string, unknown>>): object {
  const { value, '@odata.count': count, '@odata.nextLink': next, ...others } = page
  return {
    ...others,
    ...(count === undefined ? {} : { __count: `${Number(count)}` }),
    results: value,
    ...(next === undefined ? {} : { __next: next }),
  }
}
