import express, { type Express, type Request, type Response } from 'express'

import { AdapterError } from '../errors.ts'
import type { ProxyContext } from './context.ts'
import { sendError } from './error-reply.ts'
import { handleBatch } from './handle-batch.ts'
import {
  handleReadMetadata,
  handleReadRegistrations,
  handleReadServiceDocument,
} from './handle-read-documents.ts'
import { handleReadSingle } from './handle-read-single.ts'
import { handleRead } from './handle-read.ts'
import { handleMetrics, type MetricsPage } from './handle-metrics.ts'
import { handleRecord } from './handle-record.ts'
import type { PassThrough } from './pass-through.ts'
import { checkHost } from './read-request.ts'

// Any prefix, any case, `$` or its encoding (product contract: paths). No groups: Express decodes what a group caught and
// answers a bad encoding in its own way.
const BATCH = /\/v2\/attendance\/(?:\$|%24)batch\/?$/i
const RECORDS = /\/v2\/attendance\/attendancerecords\/?$/i
const RECORD = /\/v2\/attendance\/attendancerecords(?:\(|%28)[^/]*\/?$/i
const METADATA = /\/v2\/attendance\/(?:\$|%24)metadata\/?$/i
const SERVICE = /\/v2\/attendance\/?$/i
const REGISTRATIONS = /\/v2\/learnerregistations\/?$/i

/** What `/readyz` tells; all but `ready` is 503. */
export type Readiness = 'ready' | 'stopping' | 'journal unavailable' | 'journal lease lost'

type Handle = (context: ProxyContext, request: Request, response: Response, prefix: string) => Promise<void>

/** Creates the adapter's Express application: health, metrics, the translated V2 paths, and pass-through for the rest. */
export function createProxyApp(
  context: ProxyContext,
  passThrough: PassThrough,
  readiness: () => Readiness,
  metrics: MetricsPage,
): Express {
  const app = express()
  app.disable('x-powered-by')
  app.disable('etag')
  app.get('/healthz', (_request, response) => {
    response.json({ status: 'ok' })
  })
  app.get('/readyz', (_request, response) => {
    const status = readiness()
    response.status(status === 'ready' ? 200 : 503).json({ status })
  })
  // Not counted among what is under way: who asks would always see itself.
  app.get('/metrics', (request, response) =>
    handleMetrics(metrics, request, response).catch((cause: unknown) =>
      sendError(response, cause, context.events),
    ),
  )
  app.all(BATCH, translated(context, { POST: handleBatch }))
  app.all(RECORDS, translated(context, { GET: handleRead, POST: handleRecord }))
  app.all(RECORD, translated(context, { GET: handleReadSingle }))
  app.all(METADATA, translated(context, { GET: handleReadMetadata }))
  app.all(SERVICE, translated(context, { GET: handleReadServiceDocument }))
  app.all(
    REGISTRATIONS,
    translated(context, {
      GET: (_context, request, response) => handleReadRegistrations(context, request, response, passThrough),
    }),
  )
  app.use(
    guarded(context, async (request, response) => {
      checkHost(request)
      await passThrough.handle(request, response, await context.authorise(request))
    }),
  )
  return app
}

/** A route of the V2 interface, with the methods that are translated. */
function translated(
  context: ProxyContext,
  handlers: Readonly<Record<string, Handle>>,
): (request: Request, response: Response) => Promise<void> {
  return guarded(context, async (request, response) => {
    const handle = handlers[request.method]
    if (handle === undefined) {
      const allowed = Object.keys(handlers).join(', ')
      response.setHeader('Allow', allowed)
      throw new AdapterError('ADP_METHOD_NOT_ALLOWED', `This path takes ${allowed}.`)
    }
    await handle(context, request, response, prefixOf(request.path))
  })
}

/** Every refusal ends in one place; no error reaches Express's own page, which shows stacks. */
function guarded(
  context: ProxyContext,
  handle: (request: Request, response: Response) => Promise<void>,
): (request: Request, response: Response) => Promise<void> {
  return (request, response) =>
    context.inFlight.run(async () => {
      try {
        await handle(request, response)
      } catch (cause) {
        if (!isAbandoned(cause, response)) sendError(response, cause, context.events)
      }
      // A reply is under way until its last byte has left, or its client.
      if (!response.closed && !response.destroyed)
        await new Promise((resolve) => response.once('close', resolve))
    })
}

/** True when the client went away while its call waited: nobody is left to be told, and nothing failed. */
function isAbandoned(cause: unknown, response: Response): boolean {
  return response.destroyed && cause instanceof Error && cause.name === 'AbortError'
}

function prefixOf(path: string): string {
  const route = [BATCH, RECORDS, RECORD, METADATA, SERVICE].find((pattern) => pattern.test(path))
  return route === undefined ? path : path.replace(route, '')
}
