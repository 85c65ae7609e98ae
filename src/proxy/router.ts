import { IncomingMessage, type RequestListener, ServerResponse } from 'node:http'

import express, { type NextFunction, type Request, type Response } from 'express'

import { AdapterError } from '../errors.ts'
import { checkHost } from '../http/address.ts'
import { checkTransferCoding } from '../http/body.ts'
import { pathBefore, type RequestTarget, takeTarget } from '../http/request-target.ts'
import type { Events } from '../observability/events.ts'
import { unitOf } from '../partners/partner.ts'
import type { StageEntry } from '../rollout/decide.ts'
import type { RequestKind, Side } from '../rollout/stage.ts'
import { batchPath } from '../v2/index.ts'
import { readMethods, refuseMethod } from './allowed-paths.ts'
import { openExchange } from './after-exchange.ts'
import type { Handle, ProxyContext } from './context.ts'
import { sendError } from './error-reply.ts'
import type { Received } from './exchange.ts'
import { checkConnectionOptions, replaceForwarding } from './forwarded-fields.ts'
import { handleLegacy } from './handle-legacy.ts'
import {
  handleReadCount,
  handleReadField,
  handleReadMark,
  handleReadMetadata,
  handleReadPage,
  handleReadRegistrations,
  handleReadServiceDocument,
} from './handle-read.ts'
import { createOperations, type MetricsPage, type Readiness, findMisspelt } from './operations.ts'
import { isIssuedTo, type LinkMarker, takeSideMarker } from './requested-address.ts'
import { handleWrite } from './write-handler.ts'

/** A route of the adapter. `pattern` matches a path in any case and under any prefix (product contract: paths). */
interface Route {
  readonly pattern: RegExp
  readonly segments: number
  /** The kind of a request on this route. A POST to the set of records has the kind `record` instead. */
  readonly kind: RequestKind
  readonly handlers: Readonly<Record<string, Handle>>
}

const routes: readonly Route[] = [
  { pattern: batchPath, segments: 3, kind: 'batch', handlers: { POST: handleWrite } },
  {
    pattern: /\/v2\/attendance\/attendancerecords(?:\(\))?\/?$/i,
    segments: 3,
    kind: 'readFilter',
    handlers: { GET: handleReadPage, POST: handleWrite },
  },
  {
    pattern: /\/v2\/attendance\/attendancerecords(?:\(\))?\/\$count\/?$/i,
    segments: 4,
    kind: 'readFilter',
    handlers: { GET: handleReadCount },
  },
  {
    pattern: /\/v2\/attendance\/attendancerecords\([^/]*\/?$/i,
    segments: 3,
    kind: 'readKey',
    handlers: { GET: handleReadMark },
  },
  {
    pattern: /\/v2\/attendance\/attendancerecords\([^/]*\)(?:\/[^/]+)+\/?$/i,
    segments: 4,
    kind: 'readKey',
    handlers: { GET: handleReadField },
  },
  {
    pattern: /\/v2\/attendance\/\$metadata\/?$/i,
    segments: 3,
    kind: 'documents',
    handlers: { GET: handleReadMetadata },
  },
  {
    pattern: /\/v2\/attendance\/?$/i,
    segments: 2,
    kind: 'documents',
    handlers: { GET: handleReadServiceDocument },
  },
  {
    pattern: /\/v2\/learnerregistr?ations(?:\([^/]*)?(?:\/[^/]*)*$/i,
    segments: 2,
    kind: 'registrations',
    handlers: { GET: handleReadRegistrations },
  },
]

const V2_SEGMENT = /\/v2\//i

function findRoute(path: string): Route | undefined {
  return V2_SEGMENT.test(path) ? routes.find(({ pattern }) => pattern.test(path)) : undefined
}

/** Returns the kind of a request. The partner's stage decides the side by this kind. */
function kindOf(route: Route | undefined, path: string, { method }: IncomingMessage): RequestKind {
  if (route === undefined) return V2_SEGMENT.test(path) ? 'otherV2' : 'v3Path'
  return route.kind === 'readFilter' && method === 'POST' ? 'record' : route.kind
}

/** Returns the handler of a request's method. HEAD uses the handler of GET, because Node.js omits the body (RFC 9110 9.3.2). */
function handlerOf({ handlers }: Route, { method = '' }: IncomingMessage): Handle | undefined {
  return handlers[method === 'HEAD' ? 'GET' : method]
}

function methodsOf({ handlers }: Route): string[] {
  return Object.keys(handlers).flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method]))
}

const operationMethods = ['GET', 'HEAD']

interface Locals extends Record<string, unknown> {
  target: RequestTarget
  /** The marker that the target had, or `undefined` if the target is not a next link. */
  marker: LinkMarker | undefined
}
type ProxyResponse = Response<unknown, Locals>

export interface ProxyApp {
  readonly listener: RequestListener
  readonly messages: MessageClasses
  /** Called when the body of a request was cut off. Sends an error only if V2 or V3 already received a part of the body. */
  readonly onCutOff: (request: IncomingMessage, response: ServerResponse) => void
}

/**
 * Creates the adapter's listener, an Express application that serves the operational paths, the translated V2 paths and the pass-through.
 * The target of every request is read once and by one rule, because Express itself ignores case and trailing slashes. The method is checked
 * before the credentials, and before anything is sent.
 */
export function createProxyApp(
  context: ProxyContext,
  readiness: () => Readiness,
  metrics: MetricsPage,
): ProxyApp {
  const { events, tracing } = context
  const operations = createOperations(readiness, metrics)
  const app = express()
  app.disable('x-powered-by')
  app.disable('etag')
  // Each middleware costs as much time as reading the target, so there is only one.
  app.use(async (request, response: ProxyResponse) => {
    const operation = operations.get(response.locals.target.rawPath)
    if (operation !== undefined) {
      // Operational requests do not count as in flight, because otherwise a reader of the metrics would always see its own request.
      if (!operationMethods.includes(request.method)) throw refuseMethod(request, response, operationMethods)
      await operation(request, response)
      return
    }
    replaceForwarding(request, context)
    if (tracing === undefined) await serveOrRefuse(request, response)
    else await tracing.serve(request, response, () => serveOrRefuse(request, response))
  })
  // Replaces Express's own error page, which would show stacks.
  // eslint-disable-next-line @typescript-eslint/no-unused-vars -- the fourth parameter is what makes it an error handler
  app.use((cause: unknown, _request: Request, response: Response, _next: NextFunction) => {
    answerFailure(cause, response, events)
  })

  const serveOrRefuse = async (request: Request, response: ProxyResponse): Promise<void> => {
    const leave = [context.inFlight.enter()]
    watchClient(context, request, response)
    try {
      await context.failures.run(() => serve(request, response, leave))
    } catch (cause) {
      answerFailure(cause, response, events)
    } finally {
      afterReply(response, leave)
    }
  }
  // Recognises the client before the side is chosen, because the side depends on the partner. `serveOnSide` authorises it, for V3 only.
  const serve = async (request: Request, response: ProxyResponse, leave: (() => void)[]): Promise<void> => {
    const receivedMs = context.nowMs()
    checkHost(request)
    checkTransferCoding(request)
    checkConnectionOptions(request)
    const { target, marker } = response.locals
    const exact = findMisspelt(operations, target.path)
    if (exact !== undefined)
      throw new AdapterError(
        'ADP_NOT_FOUND',
        `This path is not served. Nothing was read. Request ${exact} in exactly this spelling.`,
      )
    const route = findRoute(target.path)
    const kind = kindOf(route, target.path, request)
    if (kind !== 'otherV2') checkMethod(context, route, request, response)
    const client = context.recognise(request)
    leave.push(context.enterPartner(client.partner))
    const unit = unitOf(client, request)
    const entry = await context.stages.enter(client.partner, { kind, unit })
    try {
      const side = sideOf(context, entry, client.owner, kind === 'v3Path' ? undefined : marker, request)
      if (kind === 'otherV2') checkOther(context, side, request, response)
      tracing?.describe({ kind, partner: client.partner.id, stage: entry.stage, side })
      const prefix = pathBefore(target.rawPath, route?.segments ?? 0)
      const received = { request, response, target, prefix, client, entry, side, kind, unit, receivedMs }
      await serveOnSide(context, received, route)
    } finally {
      entry.release()
    }
  }
  const listener: RequestListener = (request, response) => {
    // The target is read before Express, whose parser answers an unreadable target with a page of its own.
    try {
      const marker = takeSideMarker(request)
      app(request, Object.assign(response, { locals: { target: takeTarget(request), marker } }))
    } catch (cause) {
      sendError(response, cause, events)
    }
  }
  const onCutOff: ProxyApp['onCutOff'] = (request, response) => {
    const error = context.relays.abandonUpload(request)
    if (error.code !== 'ADP_SLOW_CLIENT') sendError(response.setHeader('Connection', 'close'), error, events)
  }
  return { listener, messages: createMessageClasses(app), onCutOff }
}

/** Returns the side of a request. The side that issued a next link also serves its page, except that V2 is never called at `complete`. */
function sideOf(
  { reads }: ProxyContext,
  { side, stage }: StageEntry,
  owner: string,
  marker: LinkMarker | undefined,
  { method = '' }: IncomingMessage,
): Side {
  if (marker === undefined || !readMethods.includes(method)) return side
  if (marker.side === 'v2') return stage === 'complete' ? side : 'v2'
  return isIssuedTo(marker, () => reads.linkSecret, owner) ? 'v3' : side
}

/** Serves a request on its side. V3 gets the request unchanged if no route translates the path. */
async function serveOnSide(
  context: ProxyContext,
  received: Received,
  route: Route | undefined,
): Promise<void> {
  const { request, response, client } = received
  const { exchange, after } = openExchange(context, received)
  const handle = route && handlerOf(route, request)
  try {
    if (exchange.side === 'v2') await handleLegacy(context, exchange)
    else {
      const authorisation = await context.authorise(request, client)
      if (handle === undefined) await context.passThrough.handle(request, response, authorisation)
      else await handle(context, exchange, authorisation)
    }
  } catch (cause) {
    exchange.result.cause = cause
    throw cause
  } finally {
    await after()
  }
}

/** Throws `ADP_METHOD_NOT_ALLOWED` if the path does not accept the method. Runs before the credentials are read. */
function checkMethod(
  { passThrough }: ProxyContext,
  route: Route | undefined,
  request: IncomingMessage,
  response: ServerResponse,
): void {
  if (route === undefined) passThrough.checkMethod(request, response)
  else if (handlerOf(route, request) === undefined) throw refuseMethod(request, response, methodsOf(route))
}

/**
 * Checks the method for a path of V2 that no route translates. If V2 serves the client, the adapter accepts only reads. If V3 serves the
 * client, the adapter accepts the methods of the pass-through list.
 */
function checkOther(
  { passThrough }: ProxyContext,
  side: Side,
  request: IncomingMessage,
  response: ServerResponse,
): void {
  if (side === 'v3') passThrough.checkMethod(request, response)
  else if (!readMethods.includes(request.method ?? '')) throw refuseMethod(request, response, readMethods)
}

/** Calls all functions in `leave` once the response closes. Uses a listener, because a pending promise would keep the request in memory. */
function afterReply(response: ServerResponse, leave: readonly (() => void)[]): void {
  const leaveAll = (): void => {
    for (const one of leave) one()
  }
  if (response.closed || response.destroyed) leaveAll()
  else response.on('close', leaveAll)
}

function answerFailure(cause: unknown, response: ServerResponse, events: Events): void {
  if (!isOver(cause, response)) sendError(response, cause, events)
}

/**
 * Returns true if no error reply can be sent, because the client disconnected during its call or already got an error for being too slow.
 */
function isOver(cause: unknown, response: ServerResponse): boolean {
  if (response.writableEnded && response.statusCode >= 400) return true
  return response.destroyed && cause instanceof Error && cause.name === 'AbortError'
}

/**
 * Watches the speed of a client until its reply was sent. A slow upload gets 408, or an unknown outcome if a part of it was already sent.
 * Once the reply has begun or ended, the only answer to a slow client is to close its connection.
 */
function watchClient(
  { slowClients, events, relays }: ProxyContext,
  request: IncomingMessage,
  response: ServerResponse,
): void {
  const { socket } = request
  slowClients.watch(request, response, (phase) => {
    events.slowClient({ phase })
    if (phase === 'reply' || response.headersSent) {
      response.destroy()
      // Once a response has ended, `response.destroy` no longer closes the connection, on which the rest of the upload still arrives.
      socket.destroy()
      return
    }
    // Node.js stops reading a request whose response has ended, and a reader of the body would then wait forever.
    response.setHeader('Connection', 'close').once('close', () => request.destroy())
    sendError(response, relays.abandonUpload(request), events)
  })
}

export interface MessageClasses {
  readonly IncomingMessage: typeof IncomingMessage
  readonly ServerResponse: typeof ServerResponse
}

/**
 * Creates message classes that have the prototypes of an Express application from the start. Otherwise Express sets the prototypes on each
 * request, and V8 changes the hidden class of both objects, which costs more than the rest of Express.
 */
function createMessageClasses(app: ReturnType<typeof express>): MessageClasses {
  class AppRequest extends IncomingMessage {}
  class AppResponse<Request extends IncomingMessage> extends ServerResponse<Request> {}
  Object.setPrototypeOf(AppRequest.prototype, app.request)
  Object.setPrototypeOf(AppResponse.prototype, app.response)
  Object.assign(app, { request: AppRequest.prototype, response: AppResponse.prototype })
  return { IncomingMessage: AppRequest, ServerResponse: AppResponse }
}
