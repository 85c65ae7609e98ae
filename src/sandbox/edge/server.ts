import { setTimeout as delay } from 'node:timers/promises'
import express from 'express'
import type { Express, NextFunction, Request, Response } from 'express'
import { AdapterError } from '../../errors.ts'
import { readBody } from '../../http/body.ts'
import type { Fault } from '../control/fault.ts'
import type { Service } from '../service.ts'
import { joinFaults } from './disturbance.ts'
import { faultReply, internalError } from './refusals.ts'
import type { Reply } from './reply.ts'
import type { ServiceRequest } from './request.ts'
import type { Admission, Credentials, Principal } from '../security/gateway.ts'
import { loseReply, sendDisturbed, sendReply } from './send.ts'

/** The service behind the HTTP edge. */
export interface ServerParts {
  readonly admit: (credentials: Credentials) => Admission
  /** Answers `POST …/connect/token`; undefined: the port has no token endpoint. */
  readonly issueToken: ((contentType: string | undefined, body: string) => Reply) | undefined
  readonly service: Service
  /** Routes under `/_sandbox`; undefined: switched off. */
  readonly control: express.Router | undefined
  readonly maxBodyBytes: number
  /** Added to every answer of the data service. */
  readonly latencyMs: number
  /** Service root that `@odata.context` names, where it is not the one that was called. */
  readonly contextUrl: string | undefined
  /** The faults that strike a request; usually none. */
  readonly strike: (method: string, path: string) => Fault[]
  /** The effect beyond which stale reads see nothing. */
  readonly staleAfter: () => number
  /** Called with internal errors of the sandbox; the client only gets a 500. */
  readonly onError: (error: unknown) => void
}

const maxFormBytes = 16_384

/** Builds the Express application: health, control, then the gateway and the data service for every other path. */
export function createServer(parts: ServerParts): Express {
  const app = express()
  app.disable('x-powered-by')
  app.disable('etag')
  app.get(['/healthz', '/readyz'], (_request, response) => void response.json({ status: 'ok' }))
  if (parts.control !== undefined) app.use('/_sandbox', parts.control)
  const { issueToken } = parts
  if (issueToken !== undefined) {
    // Any prefix; the identity service has a host of its own.
    app.post(/\/connect\/token$/i, async (request, response) => {
      const body = await readBody(request, { maxBytes: maxFormBytes, contentEncoding: undefined })
      sendReply(response, issueToken(request.headers['content-type'], body.toString('utf8')))
    })
  }
  app.use((request, response) => serve(parts, request, response))
  // Express knows an error handler by its four parameters.
  app.use((error: unknown, _request: Request, response: Response, next: NextFunction) => {
    if (response.headersSent) next(error)
    else sendReply(response, replyTo(error, parts.onError))
  })
  return app
}

/** The reply to an error; internal errors are reported as well. */
function replyTo(error: unknown, onError: ServerParts['onError']): Reply {
  if (error instanceof AdapterError) return faultReply(error)
  onError(error)
  return internalError
}

async function serve(parts: ServerParts, request: Request, response: Response): Promise<void> {
  const admission = parts.admit({
    subscriptionKey: single(request.headers['ocp-apim-subscription-key']),
    authorization: request.headers.authorization,
  })
  if ('refusal' in admission) {
    request.resume()
    sendReply(response, admission.refusal)
    return
  }
  const { principal } = admission
  if (parts.latencyMs > 0) await delay(parts.latencyMs)
  const faults = parts.strike(request.method, request.path)
  if (faults.length === 0) sendReply(response, await answer(parts, request, principal))
  else await serveDisturbed(parts, request, response, principal, faults)
}

async function serveDisturbed(
  parts: ServerParts,
  request: Request,
  response: Response,
  principal: Principal,
  faults: readonly Fault[],
): Promise<void> {
  const disturbance = joinFaults(faults)
  const { loss, latencyMs } = disturbance
  if (latencyMs > 0) await delay(latencyMs)
  if (disturbance.reply !== undefined || loss?.apply === false) {
    // The request has arrived completely, so the client cannot know whether it was applied.
    await readBody(request, { maxBytes: parts.maxBodyBytes, contentEncoding: undefined })
  }
  if (loss?.apply === false) {
    loseReply(response, loss.how)
    return
  }
  const asOf = disturbance.staleRead ? parts.staleAfter() : undefined
  const reply = disturbance.reply ?? (await answer(parts, request, principal, asOf))
  if (loss === undefined) sendDisturbed(response, reply, disturbance)
  else loseReply(response, loss.how)
}

async function answer(
  parts: ServerParts,
  request: Request,
  principal: Principal,
  asOf?: number,
): Promise<Reply> {
  try {
    const body = await readBody(request, {
      maxBytes: parts.maxBodyBytes,
      contentEncoding: request.headers['content-encoding'],
      contentLength: request.headers['content-length'],
    })
    const { contextUrl } = parts
    return parts.service({
      ...toServiceRequest(request, body, principal),
      ...(asOf === undefined ? {} : { asOf }),
      ...(contextUrl === undefined ? {} : { contextUrl }),
    })
  } catch (error) {
    return replyTo(error, parts.onError)
  }
}

function toServiceRequest(request: Request, body: Buffer, principal: Principal): ServiceRequest {
  const mark = request.url.indexOf('?')
  const encrypted = 'encrypted' in request.socket
  return {
    // Node leaves out the body of the answer (RFC 9110 9.3.2).
    method: request.method === 'HEAD' ? 'GET' : request.method,
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
