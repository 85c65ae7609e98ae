import type { IncomingMessage, ServerResponse } from 'node:http'

import type { ProxyContext } from './context.ts'
import { sendError } from './error-reply.ts'

/**
 * Watches the client of a request until its reply has left. A slow upload is refused with 408, or what is said of one of which
 * a part was sent on; the connection of a slow reader is closed, since its reply has begun.
 */
export function watchClient(
  {
    slowClients,
    events,
    passThrough,
    relays,
  }: Pick<ProxyContext, 'slowClients' | 'events' | 'passThrough' | 'relays'>,
  request: IncomingMessage,
  response: ServerResponse,
): void {
  slowClients.watch(request, response, (phase) => {
    events.slowClient({ phase })
    if (phase === 'reply' || response.headersSent) {
      response.destroy()
      return
    }
    // Node forgets a request whose response has ended: a reader of the body would wait for ever.
    response.setHeader('Connection', 'close').once('close', () => request.destroy())
    sendError(response, relays.uploadLost(request) ?? passThrough.uploadLost(request), events)
  })
}
