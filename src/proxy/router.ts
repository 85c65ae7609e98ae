import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'

import { AdapterError } from '../errors.ts'
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
import { handleReadSingle } from './handle-read-single.ts'
import { handleRead } from './handle-read.ts'
import { handleRecord } from './handle-record.ts'
import { createOperations, type Readiness, respelt } from './operations.ts'
import type { PassThrough } from './pass-through.ts'
import { checkHost } from './read-request.ts'
import { pathBefore, type RequestTarget, takeTarget } from './request-target.ts'

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
  { pattern: /\/v2\/attendance\/\$batch\/?$/i, segments: 3, handlers: { POST: handleBatch } },
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
  { pattern: /\/v2\/attendance\/\$metadata\/?$/i, segments: 3, handlers: { GET: handleReadMetadata } },
  { pattern: /\/v2\/attendance\/?$/i, segments: 2, handlers: { GET: handleReadServiceDocument } },
  { pattern: /\/v2\/learnerregistations\/?$/i, segments: 2, handlers: { GET: handleReadRegistrations } },
]

const operationMethods = ['GET', 'HEAD']

/**
 * Creates the adapter's listener: health, metrics, the translated V2 paths, and pass-through for the rest. The target of every
 * request is read once, by one rule, and its method is checked before credentials are and before anything leaves.
 */
export function createProxyApp(
  context: ProxyContext,
  passThrough: PassThrough,
  readiness: () => Readiness,
  metrics: MetricsPage,
): RequestListener {
  const operations = createOperations(readiness, metrics)
  const serve = async (
    target: RequestTarget,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> => {
    checkHost(request)
    const { path, rawPath } = target
    const exact = respelt(operations, path)
    if (exact !== undefined) throw new AdapterError('ADP_NOT_FOUND', `This path is not served; ${exact} is.`)
    const route = routes.find(({ pattern }) => pattern.test(path))
    if (route === undefined) {
      passThrough.checkMethod(request, response)
      await passThrough.handle(request, response, await context.authorise(request))
      return
    }
    const handle = route.handlers[request.method ?? '']
    if (handle === undefined) throw refuseMethod(response, Object.keys(route.handlers))
    await handle(context, request, response, pathBefore(rawPath, route.segments), passThrough)
  }
  return (request, response) => {
    let target: RequestTarget
    try {
      target = takeTarget(request)
    } catch (cause) {
      sendError(response, cause, context.events)
      return
    }
    const operation = operations.get(target.rawPath)
    if (operation === undefined) {
      replaceForwarding(request, context.trustedProxies)
      void context.inFlight.run(async () => {
        await guard(context, response, () => serve(target, request, response))
        // A reply is under way until its last byte has left, or its client.
        if (!response.closed && !response.destroyed)
          await new Promise((resolve) => response.once('close', resolve))
      })
      return
    }
    // Not counted among the requests under way: a reader of the metrics would always see itself.
    void guard(context, response, () => {
      if (!operationMethods.includes(request.method ?? '')) throw refuseMethod(response, operationMethods)
      return operation(request, response)
    })
  }
}

/** Every refusal ends in one place; no error goes past it. */
async function guard(
  { events }: Pick<ProxyContext, 'events'>,
  response: ServerResponse,
  work: () => Promise<void>,
): Promise<void> {
  try {
    await work()
  } catch (cause) {
    if (!isAbandoned(cause, response)) sendError(response, cause, events)
  }
}

/** True when the client went away while its call waited: there is no reply to send, and nothing failed. */
function isAbandoned(cause: unknown, response: ServerResponse): boolean {
  return response.destroyed && cause instanceof Error && cause.name === 'AbortError'
}
