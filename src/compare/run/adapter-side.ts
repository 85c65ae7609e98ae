import { AdapterError } from '../../errors.ts'
import type { Authorisation } from '../../partners/partner.ts'
import { type ReadContext, readPage } from '../../reads/index.ts'
import type { ComparedSide } from './side.ts'
import { readSidePage } from './side.ts'
import type { OpenSession } from './upstream-side.ts'

/** The address of a request that no client made: it appears in links only, of which the query is used. */
const ADDRESS = 'http://compare.invalid/V2/Attendance/AttendanceRecords'

/**
 * V3 as the adapter shows it: each page is the answer that a client of the partner would get, made by the code that serves
 * clients, from the plan of the query to the text of the page. `client` is asked for before each page: its token may be new.
 */
export function createAdapterSide(
  context: ReadContext,
  client: () => Promise<Authorisation>,
  openSession: OpenSession,
): ComparedSide {
  return {
    name: 'V3',
    page: async (query, signal) => {
      const [session, authorisation] = await Promise.all([openSession(signal), client()])
      const request = {
        path: '/V2/Attendance/AttendanceRecords',
        query,
        address: ADDRESS,
        nextAddress: ADDRESS,
        accept: 'application/json;odata.metadata=none',
        prefer: '',
      }
      const { body } = await readPage(context, authorisation, request, session)
      return readSidePage(parseAnswer(body.join('')))
    },
  }
}

function parseAnswer(body: string): unknown {
  try {
    return JSON.parse(body) as unknown
  } catch (cause) {
    throw new AdapterError('ADP_INTERNAL', 'The page that the adapter wrote is not JSON.', { cause })
  }
}
