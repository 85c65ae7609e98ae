import type { ServerResponse } from 'node:http'

/** The reason of all signals of clients that have gone: an exception costs more than the rest of a signal. */
export const GONE = new DOMException('The client closed its connection.', 'AbortError')

/** Aborts when the connection of the reply closes. */
export function untilGone(response: ServerResponse): AbortSignal {
  const gone = new AbortController()
  if (response.destroyed) gone.abort(GONE)
  else response.once('close', () => gone.abort(GONE))
  return gone.signal
}
