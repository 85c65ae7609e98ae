import type { IncomingMessage, ServerResponse } from 'node:http'

import type { ProxyContext } from './context.ts'
import { sendError } from './error-reply.ts'

/**
 * Watches the client of a request until its reply has left. A slow upload is refused with 408, or what is said of one of which
 * a part was sent on; once the reply has begun, or is over, only the connection of a slow client can be closed.
 */
export function watchClient(
  { slowClients, events, relays }: Pick<ProxyContext, 'slowClients' | 'events' | 'relays'>,
  request: IncomingMessage,
  response: ServerResponse,
): void {
  const { socket } = request
  slowClients.watch(request, response, (phase) => {
    events.slowClient({ phase })
    if (phase === 'reply' || response.headersSent) {
      response.destroy()
      // A response that has ended has let go of its connection, on which the rest of the upload still comes.
      socket.destroy()
      return
    }
    // Node forgets a request whose response has ended: a reader of the body would wait for ever.
    response.setHeader('Connection', 'close').once('close', () => request.destroy())
    sendError(response, relays.uploadLost(request), events)
  })
}
