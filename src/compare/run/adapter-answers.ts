import type { Authorisation } from '../../partners/partner.ts'
import { type ReadContext, readMark, readPage } from '../../reads/index.ts'
import { toV3RegistrationQuery } from '../../translate/index.ts'
import { type AskedRead, failureOf, type SideAnswer } from '../live/ask-sides.ts'
import type { ComparedSide } from './side.ts'
import type { OpenSession } from './upstream-side.ts'

/** Asks V3 for what a client of V2 would get through the adapter; never rejects. */
export type AskAdapter = (
  read: Pick<AskedRead, 'kind' | 'path' | 'query'>,
  signal: AbortSignal,
) => Promise<SideAnswer>

/** Calls in a row without an answer after which V3 is not asked any longer. */
const MAX_FAILURES = 3

/** The read path of the adapter for single reads of clients. `registrations`: V3's own. */
export function createAdapterAnswers(
  context: ReadContext,
  client: () => Promise<Authorisation>,
  openSession: OpenSession,
  registrations: ComparedSide,
): AskAdapter {
  let failures = 0
  const read: AskAdapter = async ({ kind, path, query }, signal) => {
    if (kind === 'registrations') {
      const { rows, next } = await registrations.page(toV3RegistrationQuery(query), signal)
      return answered(JSON.stringify({ value: rows, '@odata.nextLink': next }))
    }
    const [session, authorisation] = await Promise.all([openSession(signal), client()])
    const address = `http://compare.invalid${path}`
    const request = { path, query, address, nextAddress: address, accept: ACCEPT, prefer: '' }
    const { body } = await (kind === 'key' ? readMark : readPage)(context, authorisation, request, session)
    return answered(body.join(''))
  }
  return async (asked, signal) => {
    if (failures >= MAX_FAILURES) return { kind: 'unknown' }
    const answer = await read(asked, signal).catch(failureOf)
    failures = answer.kind === 'answered' ? 0 : failures + 1
    return answer
  }
}

const ACCEPT = 'application/json;odata.metadata=none'

const answered = (text: string): SideAnswer => ({ kind: 'answered', status: 200, text })
