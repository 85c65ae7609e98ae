import type { ServerResponse } from 'node:http'

/** Aborts when the connection of the reply closes. */
export function untilGone(response: ServerResponse): AbortSignal {
  const gone = new AbortController()
  if (response.destroyed) gone.abort()
  else response.once('close', () => gone.abort())
  return gone.signal
}
