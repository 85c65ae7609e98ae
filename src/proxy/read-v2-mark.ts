import { toV2ReadBackFilter, toV3Page } from '../translate/index.ts'
import { getJson } from '../upstream/index.ts'
import type { V3Credentials } from '../v3/index.ts'
import type { MarkReaders } from '../writes/index.ts'

/**
 * Creates what reads a mark of V2 with a client's own credentials. `writePath`: the path of the client's request as it wrote it, beside
 * which the marks are read.
 */
export function createV2MarkReader(
  baseUrl: URL,
  writePath: string,
  { authorization, subscriptionKey }: V3Credentials,
): MarkReaders['v2'] {
  const set = writePath.replace(/\/[^/]*\/?$/, '/AttendanceRecords')
  return async (record, timeoutMs) => {
    const url = new URL(`${baseUrl.href.replace(/\/$/, '')}${set}`)
    url.search = `?$filter=${encodeURIComponent(toV2ReadBackFilter(record))}`
    const headers = { authorization, 'ocp-apim-subscription-key': subscriptionKey }
    const json = await getJson(url, headers, timeoutMs)
    return json === undefined ? { kind: 'overdue' } : { kind: 'read', json: toV3Page(json) }
  }
}
