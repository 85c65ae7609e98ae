import type { ServerResponse } from 'node:http'

/** Bytes of a body that are written together with its head. */
const MAX_JOINED = 16_384

/** Ends a reply with the last bytes of its body. Node joins a head with a short text in one piece, with bytes it does not. */
export function endJoined(response: ServerResponse, last: Buffer | undefined): void {
  if (last === undefined || last.length > MAX_JOINED) response.end(last)
  else response.end(last.toString('latin1'), 'latin1')
}
