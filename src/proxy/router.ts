import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'

import express, { type NextFunction, type Request, type Response } from 'express'

import { AdapterError } from '../errors.ts'
import { checkHost } from '../http/host.ts'
import { pathBefore, type RequestTarget, takeTarget } from '../http/request-target.ts'
import type { Events } from '../observability/events.ts'
import type { Partner } from '../partners/partner.ts'
import { unitOf } from '../partners/unit.ts'
import type { RequestKind, Side, StageEntry } from '../rollout/index.ts'
import { readMethods, refuseMethod } from './allowed-paths.ts'
import type { ProxyContext } from './context.ts'
import { sendError } from './error-reply.ts'
import type { Handle } from './exchange.ts'
import { copyExchange, type ExchangeCopy } from './copy-exchange.ts'
import { beginTrial } from './guard-trial.ts'
import { handleLegacy } from './handle-legacy.ts'
import { replaceForwarding } from './forwarding.ts'
import type { MetricsPage } from './handle-metrics.ts'
import { createMessageClasses, type MessageClasses } from './message-classes.ts'
import { isIssuedTo, type LinkMarker, takeSideMarker } from './next-link-side.ts'
import { noteWrite } from './note-write.ts'
import { createOperations, type Readiness, respelt } from './operations.ts'
import { findRoute, handlerOf, kindOf, methodsOf, type Route } from './routes.ts'
import { watchClient } from './watch-client.ts'

const operationMethods = ['GET', 'HEAD']
/** Reads of V2 that the adapter answers from V3. */
const readKinds: ReadonlySet<RequestKind> = new Set(['readFilter', 'readKey', 'documents', 'registrations'])

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
  const { events } = context
  const operations = createOperations(readiness, metrics)
  const app = express()
  app.disable('x-powered-by')
  app.disable('etag')
  // One middleware: each costs a request as much as reading its target.
  app.use(async (request, response: ProxyResponse) => {
    const operation = operations.get(response.locals.target.rawPath)
    if (operation !== undefined) {
      // Not under way: a reader of the metrics would always see its own request.
      if (!operationMethods.includes(request.method)) throw refuseMethod(response, operationMethods)
      await operation(request, response)
      return
    }
    replaceForwarding(request, context.trustedProxies)
    const leave = [context.inFlight.enter()]
    watchClient(context, request, response)
    try {
      await serve(request, response, leave)
    } catch (cause) {
      answerFailure(cause, response, events)
    } finally {
      afterReply(response, leave)
    }
  })
  // No error reaches Express's own page, which shows stacks. Express knows such a handler by its four parameters.
  // eslint-disable-next-line @typescript-eslint/no-unused-vars -- the fourth parameter is what makes it an error handler
  app.use((cause: unknown, _request: Request, response: Response, _next: NextFunction) => {
    answerFailure(cause, response, events)
  })

  // Recognises the client once; its stage decides the side, and V3 needs more credentials than V2.
  const serve = async (request: Request, response: ProxyResponse, leave: (() => void)[]): Promise<void> => {
    const receivedMs = context.nowMs()
    checkHost(request)
    const { target } = response.locals
    const exact = respelt(operations, target.path)
    if (exact !== undefined) throw new AdapterError('ADP_NOT_FOUND', `This path is not served; ${exact} is.`)
    const route = findRoute(target.path)
    const kind = kindOf(route, target.path, request)
    if (kind !== 'otherV2') checkMethod(context, route, request, response)
    const client = context.recognise(request)
    leave.push(context.enterPartner(client.partner))
    const unit = unitOf(client, request)
    const entry = await context.stages.enter(client.partner, { kind, unit })
    const partner = client.partner.id
    const queueKey = context.queueKeys.of(client)
    const counted = { request, kind, partner, unit, entry, receivedMs }
    const trial = beginTrial(context, { ...counted, isAccepted: queueKey.isAccepted() })
    const note = noteWrite(context, { ...counted, isAccepted: () => queueKey.isAccepted() })
    try {
      const side = sideOf(
        context,
        entry,
        client.owner,
        kind === 'v3Path' ? undefined : response.locals.marker,
        request,
      )
      if (side === 'v2' || !readKinds.has(kind)) context.onLoad()
      if (kind === 'otherV2') checkOther(context, side, request, response)
      const prefix = pathBefore(target.rawPath, route?.segments ?? 0)
      const copy = copyOf(context, client.partner, request, response, receivedMs)
      if (side === 'v2') {
        const path = target.rawPath
        await handleLegacy(context, {
          request,
          response,
          client,
          entry,
          kind,
          unit,
          path,
          prefix,
          receivedMs,
          copy,
          trial,
          note,
        })
      } else {
        copy?.servedBy('v3')
        const authorisation = await context.authorise(request, client)
        const handle = chooseHandler(route, request)
        await handle(context, {
          request,
          response,
          target,
          prefix,
          authorisation,
          entry,
          kind,
          unit,
          receivedMs,
          trial,
          note,
        })
      }
    } catch (cause) {
      trial.failed(cause)
      throw cause
    } finally {
      trial.drop()
      note.end()
      entry.leave()
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
  return { listener, messages: createMessageClasses(app) }
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

/** Begins to copy an exchange that is to be recorded. */
function copyOf(
  { recording, nowMs }: ProxyContext,
  partner: Partner,
  request: IncomingMessage,
  response: ProxyResponse,
  receivedMs: number,
): ExchangeCopy | undefined {
  const { rawPath } = response.locals.target
  const sink = recording.open(partner, request.method ?? '', rawPath)
  return sink && copyExchange(request, response, { receivedMs, nowMs }, sink)
}

/** Error `ADP_METHOD_NOT_ALLOWED` for a method that the path does not take, before credentials are read. */
function checkMethod(
  { passThrough }: ProxyContext,
  route: Route | undefined,
  request: IncomingMessage,
  response: ServerResponse,
): void {
  if (route === undefined) passThrough.checkMethod(request, response)
  else if (handlerOf(route, request) === undefined) throw refuseMethod(response, methodsOf(route))
}

/** As `checkMethod`, for a path of V2 that no route translates: V2 is only read there, and V3 takes what pass-through allows. */
function checkOther(
  { passThrough }: ProxyContext,
  side: Side,
  request: IncomingMessage,
  response: ServerResponse,
): void {
  if (side === 'v3') passThrough.checkMethod(request, response)
  else if (!readMethods.includes(request.method ?? '')) throw refuseMethod(response, readMethods)
}

/** The handler that serves an authorised request: V3 as it is where no route translates the path. */
function chooseHandler(route: Route | undefined, request: IncomingMessage): Handle {
  return (route === undefined ? undefined : handlerOf(route, request)) ?? handlePassThrough
}

const handlePassThrough: Handle = ({ passThrough }, { request, response, authorisation }) =>
  passThrough.handle(request, response, authorisation)

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
