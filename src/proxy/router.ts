import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'

import express, { type NextFunction, type Request, type Response } from 'express'

import { AdapterError } from '../errors.ts'
import type { Events } from '../observability/events.ts'
import { refuseMethod } from './allowed-paths.ts'
import type { ProxyContext } from './context.ts'
import { sendError } from './error-reply.ts'
import { replaceForwarding } from './forwarding.ts'
import { handleBatch } from './handle-batch.ts'
import type { MetricsPage } from './handle-metrics.ts'
import {
  handleReadMetadata,
  handleReadRegistrations,
  handleReadServiceDocument,
} from './handle-read-documents.ts'
import { handleReadField } from './handle-read-field.ts'
import { handleReadSingle } from './handle-read-single.ts'
import { handleRead, handleReadCount } from './handle-read.ts'
import { handleRecord } from './handle-record.ts'
import { createOperations, type Readiness, respelt } from './operations.ts'
import type { PassThrough } from './pass-through.ts'
import { checkHost } from '../http/host.ts'
import { pathBefore, type RequestTarget, takeTarget } from '../http/request-target.ts'
import { batchPath } from '../v2/index.ts'
import { watchClient } from './watch-client.ts'

type Handle = (
  context: ProxyContext,
  request: IncomingMessage,
  response: ServerResponse,
  prefix: string,
  passThrough: PassThrough,
) => Promise<void>

/** A path of the V2 interface, under any prefix and in any case (product contract: paths). */
interface Route {
  readonly pattern: RegExp
  /** Segments that the pattern covers. */
  readonly segments: number
  /** The methods that are translated. */
  readonly handlers: Readonly<Record<string, Handle>>
}

const routes: readonly Route[] = [
  { pattern: batchPath, segments: 3, handlers: { POST: handleBatch } },
  {
    pattern: /\/v2\/attendance\/attendancerecords\/?$/i,
    segments: 3,
    handlers: { GET: handleRead, POST: handleRecord },
  },
  {
    pattern: /\/v2\/attendance\/attendancerecords\([^/]*\/?$/i,
    segments: 3,
    handlers: { GET: handleReadSingle },
  },
  {
    pattern: /\/v2\/attendance\/attendancerecords\([^/]*\)(?:\/[^/]+)+\/?$/i,
    segments: 4,
    handlers: { GET: handleReadField },
  },
  {
    pattern: /\/v2\/attendance\/attendancerecords\/\$count\/?$/i,
    segments: 4,
    handlers: { GET: handleReadCount },
  },
  { pattern: /\/v2\/attendance\/\$metadata\/?$/i, segments: 3, handlers: { GET: handleReadMetadata } },
  { pattern: /\/v2\/attendance\/?$/i, segments: 2, handlers: { GET: handleReadServiceDocument } },
  {
    pattern: /\/v2\/learnerregistr?ations(?:\([^/]*)?(?:\/[^/]*)*$/i,
    segments: 2,
    handlers: { GET: handleReadRegistrations },
  },
]

const operationMethods = ['GET', 'HEAD']

/** What the middleware of one request hand on. */
interface Locals extends Record<string, unknown> {
  target: RequestTarget
}
type ProxyResponse = Response<unknown, Locals>

/**
 * Creates the adapter's listener, an Express application: health, metrics, the translated V2 paths, and pass-through for the
 * rest. The target of every request is read once, by one rule, and its method is checked before credentials are and before
 * anything leaves. Routes compare that target, not Express's own reading, which takes any case and a slash at the end.
 */
export function createProxyApp(
  context: ProxyContext,
  passThrough: PassThrough,
  readiness: () => Readiness,
  metrics: MetricsPage,
): RequestListener {
  const { events } = context
  const operations = createOperations(readiness, metrics)
  const app = express()
  app.disable('x-powered-by')
  app.disable('etag')
  app.use(async (request, response: ProxyResponse, next) => {
    const operation = operations.get(response.locals.target.rawPath)
    if (operation === undefined) next()
    else if (operationMethods.includes(request.method)) await operation(request, response)
    else throw refuseMethod(response, operationMethods)
  })
  app.use((request, _response, next) => {
    replaceForwarding(request, context.trustedProxies)
    next()
  })
  // Not of health and metrics: a reader of the metrics would always see its own request under way.
  app.use(async (request, response: ProxyResponse) => {
    const leave = context.inFlight.enter()
    watchClient(context, passThrough, request, response)
    try {
      await serve(request, response)
    } catch (cause) {
      answerFailure(cause, response, events)
    } finally {
      // A reply is under way until its last byte has left, or its client. Not awaited: that would keep all that the request held.
      if (response.closed || response.destroyed) leave()
      else response.once('close', leave)
    }
  })
  // No error reaches Express's own page, which shows stacks. Express knows such a handler by its four parameters.
  // eslint-disable-next-line @typescript-eslint/no-unused-vars -- the fourth parameter is what makes it an error handler
  app.use((cause: unknown, _request: Request, response: Response, _next: NextFunction) => {
    answerFailure(cause, response, events)
  })

  const serve = async (request: Request, response: ProxyResponse): Promise<void> => {
    checkHost(request)
    const { path, rawPath } = response.locals.target
    const exact = respelt(operations, path)
    if (exact !== undefined) throw new AdapterError('ADP_NOT_FOUND', `This path is not served; ${exact} is.`)
    const route = routes.find(({ pattern }) => pattern.test(path))
    if (route === undefined) {
      passThrough.checkMethod(request, response)
      await passThrough.handle(request, response, await context.authorise(request))
      return
    }
    // HEAD goes where GET does; Node leaves out the body (RFC 9110 9.3.2).
    const handle = route.handlers[request.method === 'HEAD' ? 'GET' : request.method]
    if (handle === undefined)
      throw refuseMethod(
        response,
        Object.keys(route.handlers).flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method])),
      )
    await handle(context, request, response, pathBefore(rawPath, route.segments), passThrough)
  }
  return (request, response) => {
    // Before Express: its own parser answers a target that it cannot read with a page of its own.
    try {
      app(request, Object.assign(response, { locals: { target: takeTarget(request) } }))
    } catch (cause) {
      sendError(response, cause, events)
    }
  }
}

function answerFailure(cause: unknown, response: ServerResponse, events: Events): void {
  if (!isOver(cause, response)) sendError(response, cause, events)
}

/** True when there is no reply to send: the client went away while its call waited, or was answered for being too slow. */
function isOver(cause: unknown, response: ServerResponse): boolean {
  if (response.writableEnded && response.statusCode >= 400) return true
  return response.destroyed && cause instanceof Error && cause.name === 'AbortError'
}
