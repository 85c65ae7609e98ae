import type { IncomingMessage, ServerResponse } from 'node:http'

import { AdapterError } from '../errors.ts'

/** Who may read the metrics, and where they come from. */
export interface MetricsPage {
  /** `loopback`: a caller on this machine that no proxy speaks for. */
  readonly readers: 'loopback' | 'any'
  readonly render: () => Promise<{ readonly contentType: string; readonly text: string }>
}

/** What a proxy adds: behind one, the caller's address is the proxy's. */
const proxyHeaders = ['x-forwarded-for', 'forwarded', 'x-real-ip', 'via']

/** `GET /metrics`: the Prometheus text, without credentials. Error `ADP_FORBIDDEN` for who may not read it. */
export async function handleMetrics(
  { readers, render }: MetricsPage,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  if (readers === 'loopback' && !isLocal(request))
    throw new AdapterError(
      'ADP_FORBIDDEN',
      'The metrics are for callers on this machine. listen.metrics: any opens them to all who reach this address.',
    )
  const { contentType, text } = await render()
  response.writeHead(200, { 'Content-Type': contentType, 'Content-Length': Buffer.byteLength(text) })
  response.end(text)
}

function isLocal({ socket, headers }: IncomingMessage): boolean {
  const address = socket.remoteAddress ?? ''
  return /^(?:::ffff:)?127\.|^::1$/.test(address) && proxyHeaders.every((name) => headers[name] === undefined)
}
