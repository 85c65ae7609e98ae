import type { IncomingMessage, ServerResponse } from 'node:http'

import type { MetadataLevel } from '../v2/index.ts'
import type { ProxyContext } from './context.ts'
import type { Authorisation } from './partner.ts'
import { checkHost } from './read-request.ts'
import type { ReadSession } from './read-upstream.ts'

/** Whose request this is. Errors: those of `checkHost` and `createAuthorise`. */
export async function authoriseRead(
  context: Pick<ProxyContext, 'authorise'>,
  request: IncomingMessage,
): Promise<Authorisation> {
  checkHost(request)
  return context.authorise(request)
}

/** Opens a read within the partner's budget of time; it ends when the client goes away. */
export function openReadSession(
  { nowMs, reads }: Pick<ProxyContext, 'nowMs' | 'reads'>,
  { partner, credentials, renew }: Authorisation,
  response: ServerResponse,
): ReadSession {
  const gone = new AbortController()
  response.once('close', () => gone.abort())
  const deadlineMs = nowMs() + partner.budgetMs
  return { reader: reads.reader, credentials, renew, deadlineMs, nowMs, signal: gone.signal }
}

/** The raw query of a request, without `?`. */
export function queryOf(request: IncomingMessage): string {
  const url = request.url ?? ''
  const at = url.indexOf('?')
  return at < 0 ? '' : url.slice(at + 1)
}

/** Answers with JSON in the way of an OData 4.0 service. */
export function sendJson(
  response: ServerResponse,
  status: number,
  body: string,
  metadata: MetadataLevel,
): void {
  response.writeHead(status, {
    'Content-Type': `application/json; odata.metadata=${metadata}`,
    'Content-Length': Buffer.byteLength(body),
    'OData-Version': '4.0',
  })
  response.end(body)
}
