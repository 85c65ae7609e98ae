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
import type { Handle, ProxyContext } from './context.ts'
import { sendError } from './error-reply.ts'
import { type Exchange, observeAll, type Received } from './exchange.ts'
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
import { beginTrial, logWrite, noteWrite, offerExchange } from './observers.ts'
import { createOperations, type MetricsPage, type Readiness, respelt } from './operations.ts'
import { isIssuedTo, type LinkMarker, takeSideMarker } from './requested-address.ts'
import { handleWrite } from './write-handler.ts'

/** A path of the V2 interface, under any prefix and in any case (product contract: paths). */
interface Route {
  readonly pattern: RegExp
  /** Segments that the pattern covers. */
  readonly segments: number
  /** The kind of its requests; a POST to the set of records is a `record`. */
  readonly kind: RequestKind
  /** The methods that are translated. */
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

/** The route of a decoded path; undefined: it goes to V3 as it is. */
function findRoute(path: string): Route | undefined {
  return V2_SEGMENT.test(path) ? routes.find(({ pattern }) => pattern.test(path)) : undefined
}

/** The kind of a request, by which its stage decides who serves it. */
function kindOf(route: Route | undefined, path: string, { method }: IncomingMessage): RequestKind {
  if (route === undefined) return V2_SEGMENT.test(path) ? 'otherV2' : 'v3Path'
  return route.kind === 'readFilter' && method === 'POST' ? 'record' : route.kind
}

/** The handler of a request's method. HEAD goes where GET does; Node leaves out the body (RFC 9110 9.3.2). */
function handlerOf({ handlers }: Route, { method = '' }: IncomingMessage): Handle | undefined {
  return handlers[method === 'HEAD' ? 'GET' : method]
}

/** The methods of a route. */
function methodsOf({ handlers }: Route): string[] {
  return Object.keys(handlers).flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method]))
}

const operationMethods = ['GET', 'HEAD']

/** What the target of a request says, read once. */
interface Locals extends Record<string, unknown> {
  target: RequestTarget
  /** The side whose next link the target is. */
  marker: LinkMarker | undefined
}
type ProxyResponse = Response<unknown, Locals>

/** The adapter's listener, and the classes of the messages that it takes. */
export interface ProxyApp {
  readonly listener: RequestListener
  readonly messages: MessageClasses
  /** Answers a request whose body broke off, where a part of it may have been applied. */
  readonly onCutOff: (request: IncomingMessage, response: ServerResponse) => void
}

/**
 * Creates the adapter's listener, an Express application: health, metrics, the translated V2 paths, and pass-through for the
 * rest. The target of every request is read once, by one rule, and its method is checked before credentials are and before
 * anything leaves. Routes compare that target, not Express's own reading, which takes any case and a slash at the end.
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
  // One middleware: each costs a request as much as reading its target.
  app.use(async (request, response: ProxyResponse) => {
    const operation = operations.get(response.locals.target.rawPath)
    if (operation !== undefined) {
      // Not under way: a reader of the metrics would always see its own request.
      if (!operationMethods.includes(request.method)) throw refuseMethod(request, response, operationMethods)
      await operation(request, response)
      return
    }
    replaceForwarding(request, context)
    if (tracing === undefined) await serveOrRefuse(request, response)
    else await tracing.serve(request, response, () => serveOrRefuse(request, response))
  })
  // No error reaches Express's own page, which shows stacks. Express knows such a handler by its four parameters.
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
  // Recognises the client once; its stage decides the side, and V3 needs more credentials than V2.
  const serve = async (request: Request, response: ProxyResponse, leave: (() => void)[]): Promise<void> => {
    const receivedMs = context.nowMs()
    checkHost(request)
    checkTransferCoding(request)
    checkConnectionOptions(request)
    const { target, marker } = response.locals
    const exact = respelt(operations, target.path)
    if (exact !== undefined) throw new AdapterError('ADP_NOT_FOUND', `This path is not served; ${exact} is.`)
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
      await serveObserved(context, received, route)
    } finally {
      entry.release()
    }
  }
  const listener: RequestListener = (request, response) => {
    // Before Express: its own parser answers a target that it cannot read with a page of its own.
    try {
      const marker = takeSideMarker(request)
      app(request, Object.assign(response, { locals: { target: takeTarget(request), marker } }))
    } catch (cause) {
      sendError(response, cause, events)
    }
  }
  const onCutOff: ProxyApp['onCutOff'] = (request, response) => {
    const error = context.relays.uploadLost(request)
    if (error.code !== 'ADP_SLOW_CLIENT') sendError(response.setHeader('Connection', 'close'), error, events)
  }
  return { listener, messages: createMessageClasses(app), onCutOff }
}

/** The side of a request for V2's paths. The page that a next link leads to is that of its issuer; V2 is never called at `complete`. */
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

/** Serves a request on its side. V3 serves it as it is where no route translates the path. */
async function serveObserved(
  context: ProxyContext,
  received: Received,
  route: Route | undefined,
): Promise<void> {
  const { request, response, client } = received
  const queueKey = context.accepted.queueKey(client)
  const isAccepted = (): boolean => queueKey.isAccepted()
  const observer = observeAll([
    beginTrial(context, received, isAccepted()),
    noteWrite(context, received, isAccepted),
    logWrite(context, client.partner.id),
    offerExchange(context, received, isAccepted),
    context.observe?.(received) ?? {},
  ])
  const exchange: Exchange = { ...received, observer }
  const handle = route && handlerOf(route, request)
  let failure: unknown
  try {
    if (exchange.side === 'v2') await handleLegacy(context, exchange)
    else {
      const authorisation = await context.authorise(request, client)
      if (handle === undefined) await context.passThrough.handle(request, response, authorisation)
      else await handle(context, exchange, authorisation)
    }
  } catch (cause) {
    failure = cause
    throw cause
  } finally {
    observer.ended(failure)
  }
}

/** Error `ADP_METHOD_NOT_ALLOWED` for a method that the path does not take, before credentials are read. */
function checkMethod(
  { passThrough }: ProxyContext,
  route: Route | undefined,
  request: IncomingMessage,
  response: ServerResponse,
): void {
  if (route === undefined) passThrough.checkMethod(request, response)
  else if (handlerOf(route, request) === undefined) throw refuseMethod(request, response, methodsOf(route))
}

/** As `checkMethod`, for a path of V2 that no route translates: V2 is only read there, and V3 takes what pass-through allows. */
function checkOther(
  { passThrough }: ProxyContext,
  side: Side,
  request: IncomingMessage,
  response: ServerResponse,
): void {
  if (side === 'v3') passThrough.checkMethod(request, response)
  else if (!readMethods.includes(request.method ?? '')) throw refuseMethod(request, response, readMethods)
}

/** A reply is under way until its last byte has left, or its client. Not awaited: that would keep all that the request held. */
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

/** True if there is no reply to send: the client disconnected while its call waited, or was refused for being too slow. */
function isOver(cause: unknown, response: ServerResponse): boolean {
  if (response.writableEnded && response.statusCode >= 400) return true
  return response.destroyed && cause instanceof Error && cause.name === 'AbortError'
}

/**
 * Watches the client of a request until its reply has left. A slow upload is refused with 408, or what is said of one of which
 * a part was sent on; once the reply has begun, or is over, only the connection of a slow client can be closed.
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
      // A response that has ended has let go of its connection, on which the rest of the upload still comes.
      socket.destroy()
      return
    }
    // Node forgets a request whose response has ended: a reader of the body would wait for ever.
    response.setHeader('Connection', 'close').once('close', () => request.destroy())
    sendError(response, relays.uploadLost(request), events)
  })
}

/** The classes that a server creates its messages from, as `createServer` takes them. */
export interface MessageClasses {
  readonly IncomingMessage: typeof IncomingMessage
  readonly ServerResponse: typeof ServerResponse
}

/**
 * Creates messages that have the prototypes of an Express application from the start. Express would set them on each request, and
 * V8 then gives both objects another map: that costs more than the rest of Express.
 */
function createMessageClasses(app: ReturnType<typeof express>): MessageClasses {
  class AppRequest extends IncomingMessage {}
  class AppResponse<Request extends IncomingMessage> extends ServerResponse<Request> {}
  Object.setPrototypeOf(AppRequest.prototype, app.request)
  Object.setPrototypeOf(AppResponse.prototype, app.response)
  Object.assign(app, { request: AppRequest.prototype, response: AppResponse.prototype })
  return { IncomingMessage: AppRequest, ServerResponse: AppResponse }
}
