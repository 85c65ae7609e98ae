import { AdapterError } from '../../errors.ts'
import { type ReadSession, readUpstream } from '../../reads/index.ts'
import { type ComparedSide, readSidePage } from './side.ts'

/** Opens the session of one call: its credentials, its place under the rate limit, its bound of time. */
export type OpenSession = (signal: AbortSignal) => Promise<ReadSession>

/** A side that is read over HTTP as it answers: V2, and the documents that the adapter passes on as they are. */
export function createUpstreamSide(
  name: ComparedSide['name'],
  openSession: OpenSession,
  resource: string,
): ComparedSide {
  return {
    name,
    page: async (query, signal) => {
      const json = await readUpstream(await openSession(signal), resource, query)
      if (json === undefined)
        throw new AdapterError('ADP_NOT_FOUND', `There is no ${resource} below this base address.`)
      return readSidePage(json)
    },
  }
}
