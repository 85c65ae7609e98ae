/**
 * The wait that the upstream asks for, in ms: from the header `Retry-After`, seconds or an HTTP date (RFC 9110 10.2.3), else
 * from the gateway's text (service-facts 9). `nowMs` is the time that a date is compared with.
 */
export function readRetryAfter(header: string | undefined, body: string, nowMs: number): number | undefined {
  const text = header?.trim() ?? /try again in (\d{1,6}) seconds/i.exec(body)?.[1]
  if (text === undefined || text === '') return undefined
  if (/^\d{1,6}$/.test(text)) return Number(text) * 1000
  const date = Date.parse(text)
  return Number.isNaN(date) ? undefined : Math.max(0, date - nowMs)
}
