import express from 'express'
import type { Express, Request, Response } from 'express'
import { AdapterError, errorRules } from '../../errors.ts'
import { readBody } from '../../http/body.ts'
import type { Service } from '../service.ts'
import { odataError } from './reply.ts'
import type { Reply } from './reply.ts'
import type { ServiceRequest } from './request.ts'
import type { Gateway, Principal } from './security.ts'

/** What the HTTP edge serves. */
export interface ServerParts {
  readonly gateway: Gateway
  readonly service: Service
  /** Routes under `/_sandbox`; undefined: switched off. */
  readonly control: express.Router | undefined
  readonly maxBodyBytes: number
}

/** Builds the Express application: health, control, then the gateway and the data service for every other path. */
export function createServer(parts: ServerParts): Express {
  const app = express()
  app.disable('x-powered-by')
  app.disable('etag')
  app.get(['/healthz', '/readyz'], (_request, response) => void response.json({ status: 'ok' }))
  if (parts.control !== undefined) app.use('/_sandbox', parts.control)
  app.use((request, response) => serve(parts, request, response))
  return app
}

async function serve(parts: ServerParts, request: Request, response: Response): Promise<void> {
  const admission = parts.gateway.admit({
    subscriptionKey: single(request.headers['ocp-apim-subscription-key']),
    authorization: request.headers.authorization,
  })
  if ('refusal' in admission) {
    request.resume()
    send(response, admission.refusal)
    return
  }
  send(response, await answer(parts, request, admission.principal))
}

async function answer(parts: ServerParts, request: Request, principal: Principal): Promise<Reply> {
  try {
    const body = await readBody(request, {
      maxBytes: parts.maxBodyBytes,
      contentEncoding: request.headers['content-encoding'],
      contentLength: request.headers['content-length'],
    })
    return parts.service(toServiceRequest(request, body, principal))
  } catch (error) {
    if (!(error instanceof AdapterError))
      return odataError(500, 'InternalError', 'The sandbox failed on this request.')
    return odataError(errorRules[error.code].status, error.code, error.message, error.details)
  }
}

function toServiceRequest(request: Request, body: Buffer, principal: Principal): ServiceRequest {
  const mark = request.url.indexOf('?')
  const encrypted = 'encrypted' in request.socket
  return {
    method: request.method,
    path: mark < 0 ? request.url : request.url.slice(0, mark),
    query: mark < 0 ? '' : request.url.slice(mark + 1),
    header: (name) => single(request.headers[name]),
    body,
    origin: `${encrypted ? 'https' : 'http'}://${request.headers.host ?? ''}`,
    principal,
  }
}

const single = (value: string | string[] | undefined): string | undefined =>
  Array.isArray(value) ? value.join(', ') : value

function send(response: Response, reply: Reply): void {
  // Node's own writeHead: Express would parse and rewrite the content type of every answer.
  const length = reply.status === 204 ? {} : { 'Content-Length': Buffer.byteLength(reply.body) }
  response.writeHead(reply.status, { ...reply.headers, ...length })
  response.end(reply.body)
}
