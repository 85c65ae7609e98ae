import { AsyncLocalStorage } from 'node:async_hooks'
import type { IncomingMessage, ServerResponse } from 'node:http'

import type { Attributes, Context, Span, SpanContext } from '@opentelemetry/api'

import { AdapterError } from '../errors.ts'

interface CallSpan {
  /** The header field `traceparent` for the request, as a name and a value. */
  readonly fields: readonly string[]
  /** Ends the span. `status` is the status of the reply, or `undefined` if the reply is missing or incomplete. */
  end(status: number | undefined): void
}

/**
 * The traces of one process. Each client request has a span, and so do recovery and live comparison. A span has one child for each call to
 * V3 or V2, and for each commit of the journal that its request waits for. The attributes of spans are the fields of events, whose types
 * are the allow-list of what may be logged.
 */
export interface Tracing {
  /** Serves one request within a span. The span continues the trace that the client names (W3C Trace Context). */
  serve(request: IncomingMessage, response: ServerResponse, handle: () => Promise<void>): Promise<void>
  /** Names the span of the current request after `kind`, and adds the other members as attributes. */
  describe(request: {
    readonly kind: string
    readonly partner: string
    readonly stage: string
    readonly side: string
  }): void
  /**
   * Adds an event to the span of the current request. If the event reports the outcome, its fields become attributes of the span instead.
   */
  readonly addEvent: (message: string, fields: object) => void
  /**
   * Begins the span of an upstream call. Returns `undefined` unless the caller runs within a request or traced background work. `name` must
   * be from a fixed list.
   */
  call(name: string): CallSpan | undefined
  /** Runs `commit`, within a span if the caller runs within a request or traced background work. */
  readonly commit: <Result>(operation: string, commit: () => Promise<Result>) => Promise<Result>
  /** Runs background work within a span. The span is a child of the current request's span, or begins a trace if there is no request. */
  readonly work: TraceWork
  /** Sends the remaining spans. Waits at most 5 s for the collector. */
  close(): Promise<void>
}

type TraceWork = <Result>(
  name: 'recovery' | 'comparison',
  fields: object,
  work: () => Promise<Result>,
) => Promise<Result>

/** The messages of the events that report the outcome of a request or of recovery. */
const ANSWERS: ReadonlySet<string> = new Set([
  'batch answered',
  'read answered',
  'passed through',
  'records recovered',
])
const CLOSE_MS = 5_000
const CLIENT_GONE = 499

/** Loads the OpenTelemetry packages. They are optional, so that an installation without traces does not need their 28 MB. */
async function loadPackages() {
  try {
    const [api, sdk, exporter, resources] = await Promise.all([
      import('@opentelemetry/api'),
      import('@opentelemetry/sdk-trace-node'),
      import('@opentelemetry/exporter-trace-otlp-http'),
      import('@opentelemetry/resources'),
    ])
    return { ...api, ...sdk, ...exporter, ...resources }
  } catch (cause) {
    throw new AdapterError(
      'ADP_CONFIGURATION',
      'OTEL_EXPORTER_OTLP_ENDPOINT is set, but the packages that send traces are not installed. Nothing was started. ' +
        'Unset the variable, or install the packages: npm install @opentelemetry/api@1 @opentelemetry/sdk-trace-node@2 @opentelemetry/resources@2 ' +
        '@opentelemetry/exporter-trace-otlp-http@0.223',
      { cause },
    )
  }
}

/**
 * Opens the traces. The OpenTelemetry packages read the address, the headers, the sampler and the service name from the standard variables
 * `OTEL_*`. `onFailure` is called when spans cannot be sent. Throws `ADP_CONFIGURATION` if the packages are not installed.
 */
export async function openTracing(onFailure: () => void): Promise<Tracing> {
  const { trace, ROOT_CONTEXT, SpanKind, SpanStatusCode, ...sdk } = await loadPackages()
  const exporter = new sdk.OTLPTraceExporter()
  const provider = new sdk.NodeTracerProvider({
    resource: sdk
      .resourceFromAttributes({ 'service.name': 'markbridge' })
      .merge(sdk.detectResources({ detectors: [sdk.envDetector] })),
    spanProcessors: [
      new sdk.BatchSpanProcessor({
        export: (spans, done) =>
          exporter.export(spans, (result) => {
            if ((result.code as number) !== 0) onFailure()
            done(result)
          }),
        shutdown: () => exporter.shutdown(),
      }),
    ],
  })
  const tracer = provider.getTracer('markbridge')
  const active = new AsyncLocalStorage<{ readonly span: Span; readonly context: Context }>()
  const fail = (span: Span): Span => span.setStatus({ code: SpanStatusCode.ERROR })
  const endWith = async <Result>(span: Span, work: () => Promise<Result>): Promise<Result> => {
    try {
      return await work()
    } catch (cause) {
      fail(span)
      throw cause
    } finally {
      span.end()
    }
  }
  return {
    serve: (request, response, handle) => {
      const { method = '' } = request
      const parent = readTraceparent(request.headers.traceparent)
      const span = tracer.startSpan(
        method,
        { kind: SpanKind.SERVER, attributes: { 'http.request.method': method } },
        parent === undefined ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, parent),
      )
      response.once('close', () => {
        const status = response.writableFinished ? response.statusCode : CLIENT_GONE
        span.setAttribute('http.response.status_code', status)
        if (status >= 500) fail(span)
        span.end()
      })
      return active.run({ span, context: trace.setSpan(ROOT_CONTEXT, span) }, handle)
    },
    describe: (request) => {
      active.getStore()?.span.updateName(request.kind).setAttributes(toAttributes(request))
    },
    addEvent: (message, fields) => {
      const span = active.getStore()?.span
      if (ANSWERS.has(message)) span?.setAttributes(toAttributes(fields))
      else span?.addEvent(message, toAttributes(fields))
    },
    call: (name) => {
      const parent = active.getStore()
      if (parent === undefined) return undefined
      const span = tracer.startSpan(name, { kind: SpanKind.CLIENT }, parent.context)
      return {
        fields: ['traceparent', toTraceparent(span.spanContext())],
        end: (status) => {
          if (status !== undefined) span.setAttribute('http.response.status_code', status)
          if (status === undefined || status >= 400) fail(span)
          span.end()
        },
      }
    },
    commit: (operation, commit) => {
      const parent = active.getStore()
      if (parent === undefined) return commit()
      return endWith(tracer.startSpan(`journal ${operation}`, {}, parent.context), commit)
    },
    work: (name, fields, work) => {
      const parent = active.getStore()?.context ?? ROOT_CONTEXT
      const span = tracer.startSpan(name, { attributes: toAttributes(fields) }, parent)
      return endWith(span, () => active.run({ span, context: trace.setSpan(parent, span) }, work))
    },
    close: async () => {
      let timer: NodeJS.Timeout | undefined
      const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, CLOSE_MS)))
      await Promise.race([provider.shutdown().catch(onFailure), late])
      clearTimeout(timer)
    },
  }
}

/** Returns the strings, numbers and booleans of an event as attributes. Lists appear only in the log. */
function toAttributes(fields: object): Attributes {
  const attributes: Attributes = {}
  for (const [name, value] of Object.entries(fields) as [string, unknown][])
    if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean')
      attributes[`markbridge.${name}`] = value
  return attributes
}

/** Matches `traceparent` (W3C Trace Context 3.2.2). The header of a later version begins with the same members. */
const TRACEPARENT =
  /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?$/

/** Returns the span context in `traceparent`, or `undefined` if it is missing or invalid. Ignores `tracestate`, which is free text. */
function readTraceparent(value: string | string[] | undefined): SpanContext | undefined {
  const [, traceId, spanId, flags] = TRACEPARENT.exec(String(value)) ?? []
  if (traceId === undefined || spanId === undefined || flags === undefined) return undefined
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16) & 1, isRemote: true }
}

const toTraceparent = ({ traceId, spanId, traceFlags }: SpanContext): string =>
  `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`
