import type { IncomingMessage, ServerResponse } from 'node:http'
import { pipeline } from 'node:stream'

import { connectionOptions, hopByHopHeaders } from '../http/hop-by-hop.ts'
import { holdsCredential } from './added-credentials.ts'
import { createLinkRewriter } from './link-rewriter.ts'

/** Absolute links to turn into others, in JSON bodies. */
export interface LinkRewriting {
  readonly from: string
  readonly to: string
}

/**
 * Sends the upstream's reply on: status, end-to-end headers and bytes. The client's connection breaks when the upstream's
 * does, so that a torn reply never looks whole; `onBroken` is called then, before the client's connection breaks.
 * Of the head, what holds one of the `added` credentials stays behind: a client must not learn what the adapter has lent it.
 * Bodies are not searched. Throws what Node throws for a status line that cannot be sent.
 */
export function relayReply(
  upstream: IncomingMessage,
  response: ServerResponse,
  links: readonly LinkRewriting[],
  added: readonly string[],
  onBroken: () => void,
): void {
  const rewriting = isPlainJson(upstream) ? links : []
  const dropped = new Set([...hopByHopHeaders, ...connectionOptions(upstream.headers.connection)])
  if (rewriting.length > 0) dropped.add('content-length')
  const headers: string[] = []
  for (let at = 0; at + 1 < upstream.rawHeaders.length; at += 2) {
    const name = upstream.rawHeaders[at] ?? ''
    const value = upstream.rawHeaders[at + 1] ?? ''
    if (dropped.has(name.toLowerCase()) || holdsCredential(`${name}: ${value}`, added)) continue
    headers.push(name, value)
  }
  const reason = upstream.statusMessage ?? ''
  response.writeHead(upstream.statusCode ?? 0, holdsCredential(reason, added) ? '' : reason, headers)
  // Before pipeline() listens, which destroys the response.
  upstream.once('aborted', () => {
    onBroken()
  })
  const done = (): void => undefined // both ends are closed by now, each in its own way
  pipeline([upstream, ...rewriting.map(({ from, to }) => createLinkRewriter(from, to)), response], done)
}

function isPlainJson(upstream: IncomingMessage): boolean {
  const { headers } = upstream
  const encoding = headers['content-encoding'] ?? 'identity'
  return /^application\/json\b/i.test(headers['content-type'] ?? '') && encoding === 'identity'
}
