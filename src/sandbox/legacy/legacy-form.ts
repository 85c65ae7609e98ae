import { z } from 'zod'

import type { Reply } from '../http/reply.ts'
import type { ServiceRequest } from '../http/request.ts'

/** The body of `PUT /_sandbox/legacy-form`; without any, the form of service.md. */
export const legacyFormSchema = z.strictObject({
  /** Where the parts of a batch reply stand; `auto`: nested for a client that names an OData version or accepts multipart/mixed. */
  layout: z.enum(['flat', 'nested', 'auto']).default('flat'),
  /** Records and pages in the `d` of OData V2. */
  dataEnvelope: z.boolean().default(false),
  /** Parts of a batch reply are `application/http; msgtype=response`. */
  msgtypeResponse: z.boolean().default(false),
  /** Whether the records of a batch whose ids differ are applied; the reply is the same. */
  mismatch: z.enum(['post', 'drop']).default('post'),
  /** Texts of errors by their codes, in place of the sandbox's. */
  errorMessages: z.record(z.string(), z.string()).default({}),
})

/** The points in which installations of V2 differ, or that service.md leaves open. */
type LegacyForm = z.output<typeof legacyFormSchema>

/** The layout of the reply to a batch. */
export function layoutFor({ layout }: LegacyForm, { header }: Pick<ServiceRequest, 'header'>) {
  if (layout !== 'auto') return layout
  const namesVersion = ['odata-version', 'odata-maxversion'].some((name) => header(name) !== undefined)
  return namesVersion || /\bmultipart\/mixed\b/i.test(header('accept') ?? '') ? 'nested' : 'flat'
}

/** The answer to a read in this form; counts and raw values have no envelope. */
export function toLegacyForm(reply: Reply, { dataEnvelope }: LegacyForm): Reply {
  const isJson = reply.headers['Content-Type']?.startsWith('application/json') === true
  if (!dataEnvelope || reply.status !== 200 || !isJson) return reply
  const members = JSON.parse(reply.body.toString()) as Record<string, unknown>
  const d = Array.isArray(members['value']) ? toOldPage(members) : members
  return { ...reply, body: JSON.stringify({ d }) }
}

/** The names of OData V2 JSON (OData V2 JSON format 4 and 8), where the count is a text. */
function toOldPage(page: Readonly<Record<string, unknown>>): object {
  const { value, '@odata.count': count, '@odata.nextLink': next, ...others } = page
  return {
    ...others,
    ...(count === undefined ? {} : { __count: `${Number(count)}` }),
    results: value,
    ...(next === undefined ? {} : { __next: next }),
  }
}
