import type { IncomingMessage, ServerResponse } from 'node:http'

import { handleMetrics, type MetricsPage } from './handle-metrics.ts'

/** What `/readyz` answers; all but `ready` is 503. */
export type Readiness = 'ready' | 'stopping' | 'journal unavailable' | 'journal lease lost' | 'stages unknown'

/** Answers an operational request. */
export type Operation = (request: IncomingMessage, response: ServerResponse) => Promise<void>

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

/** Longer than every spelling of an operational path. */
const MAX_LENGTH = 16

/** The operational path that a decoded path is another spelling of; undefined for every other path. */
export function respelt(operations: ReadonlyMap<string, Operation>, path: string): string | undefined {
  if (path.length > MAX_LENGTH) return undefined
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
