import type { IncomingMessage, ServerResponse } from 'node:http'

import { AdapterError } from '../errors.ts'
import { hostName, isLoopback, isLoopbackAddress } from '../http/address.ts'
import { isForwarded } from './forwarded-fields.ts'

/** The status that `/readyz` reports. Every status except `ready` is sent with 503. */
export type Readiness =
  'ready' | 'stopping' | 'journal damaged' | 'journal unavailable' | 'journal lease lost' | 'stages unknown'

type Operation = (request: IncomingMessage, response: ServerResponse) => Promise<void>

/** Creates the handlers of the operational paths. A request must use their exact spelling, because load balancers compare paths as text. */
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

/** Returns `/healthz` for `/Healthz/`, and so on for each operational path, or `undefined` if the decoded path resembles none. */
export function findMisspelt(operations: ReadonlyMap<string, Operation>, path: string): string | undefined {
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

export interface MetricsPage {
  /** The callers that may read the metrics. `loopback` allows only callers on this machine that do not connect through a proxy. */
  readonly readers: 'loopback' | 'any'
  readonly render: () => Promise<{ readonly contentType: string; readonly text: string }>
}

/** Answers `/metrics`. Throws `ADP_FORBIDDEN` for a caller that may not read the metrics. */
async function handleMetrics(
  { readers, render }: MetricsPage,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  if (readers === 'loopback' && !isLocal(request))
    throw new AdapterError(
      'ADP_FORBIDDEN',
      'Only callers on this machine that use a loopback name or address may read the metrics. Nothing was read. To open the metrics to every caller that reaches this address, set listen.metrics: any.',
    )
  const { contentType, text } = await render()
  response.writeHead(200, { 'Content-Type': contentType, 'Content-Length': Buffer.byteLength(text) })
  response.end(text)
}

/** Returns true for a caller on this machine that uses no proxy. Also checks `Host`, because another name indicates DNS rebinding. */
function isLocal({ socket, headers }: IncomingMessage): boolean {
  const isLocalPeer = isLoopbackAddress(socket.remoteAddress ?? '') && !isForwarded(headers)
  return isLocalPeer && isLoopback(hostName(headers.host ?? ''))
}
