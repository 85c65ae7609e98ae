import type { IncomingMessage, ServerResponse } from 'node:http'

import { AdapterError } from '../errors.ts'
import { isLoopback, isLoopbackAddress } from '../http/loopback.ts'
import { isForwarded } from './forwarding.ts'
import { hostName } from '../http/host.ts'

/** Who may read the metrics, and where they come from. */
export interface MetricsPage {
  /** `loopback`: a caller on this machine that no proxy speaks for. */
  readonly readers: 'loopback' | 'any'
  readonly render: () => Promise<{ readonly contentType: string; readonly text: string }>
}

/** `GET /metrics`: the Prometheus text, without credentials. Error `ADP_FORBIDDEN` for who may not read it. */
export async function handleMetrics(
  { readers, render }: MetricsPage,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  if (readers === 'loopback' && !isLocal(request))
    throw new AdapterError(
      'ADP_FORBIDDEN',
      'The metrics are for callers on this machine that use a loopback name or address. listen.metrics: any opens them to all who reach this address.',
    )
  const { contentType, text } = await render()
  response.writeHead(200, { 'Content-Type': contentType, 'Content-Length': Buffer.byteLength(text) })
  response.end(text)
}

/** Behind a proxy the peer is the proxy. A name that is not loopback's was resolved by someone else: DNS rebinding. */
function isLocal({ socket, headers }: IncomingMessage): boolean {
  const isLocalPeer = isLoopbackAddress(socket.remoteAddress ?? '') && !isForwarded(headers)
  return isLocalPeer && isLoopback(hostName(headers.host ?? ''))
}
