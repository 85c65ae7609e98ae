import type { IncomingMessage, ServerResponse } from 'node:http'

import { AdapterError } from '../errors.ts'
import { hostName, isLoopback, isLoopbackAddress } from '../http/address.ts'
import { isForwarded } from './forwarded-fields.ts'

/** What `/readyz` answers; all but `ready` is 503. */
export type Readiness =
  'ready' | 'stopping' | 'journal damaged' | 'journal unavailable' | 'journal lease lost' | 'stages unknown'

/** Answers an operational request. */
type Operation = (request: IncomingMessage, response: ServerResponse) => Promise<void>

/** The paths of health, readiness and metrics, spelt as they must be: the rules of a load balancer compare text. */
export function createOperations(
  readiness: () => Readiness,
  metrics: MetricsPage,
): ReadonlyMap<string, Operation> {
  return new Map<string, Operation>([
    ['/healthz', (_request, response) => sendStatus(response, 200, 'ok')],
    [
      '/readyz',
      (_request, response) => {
        const status = readiness()
        return sendStatus(response, status === 'ready' ? 200 : 503, status)
      },
    ],
    ['/metrics', (request, response) => handleMetrics(metrics, request, response)],
  ])
}

/** The operational path that a decoded path is another spelling of; undefined for every other path. */
export function respelt(operations: ReadonlyMap<string, Operation>, path: string): string | undefined {
  const plain = path.toLowerCase().replace(/\/$/, '')
  return operations.has(plain) ? plain : undefined
}

function sendStatus(response: ServerResponse, code: number, status: string): Promise<void> {
  const body = JSON.stringify({ status })
  response.writeHead(code, {
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Length': Buffer.byteLength(body),
  })
  response.end(body)
  return Promise.resolve()
}

/** Who may read the metrics, and where they come from. */
export interface MetricsPage {
  /** `loopback`: a caller on this machine that no proxy speaks for. */
  readonly readers: 'loopback' | 'any'
  readonly render: () => Promise<{ readonly contentType: string; readonly text: string }>
}

/** `GET /metrics`: the Prometheus text, without credentials. Error `ADP_FORBIDDEN` for who may not read it. */
async function handleMetrics(
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
