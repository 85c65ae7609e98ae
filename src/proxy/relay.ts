import { Agent as HttpAgent, type IncomingMessage, ServerResponse } from 'node:http'
import { Agent as HttpsAgent } from 'node:https'
import { Stream } from 'node:stream'

import { createProxyMiddleware, proxyEventsPlugin } from 'http-proxy-middleware'

import { AdapterError } from '../errors.ts'
import { bodyArrival, hasBody } from '../http/body-arrival.ts'
import { MAX_HEADER_BYTES } from '../http/server.ts'
import { enterGate, type FairGate } from '../upstream/index.ts'
import type { ByteBudget, HeldBytes } from './byte-budget.ts'
import { sendError } from './error-reply.ts'
import { type LinkBytes, LinkRewriter, toLinkBytes } from './link-rewriter.ts'
import {
  RelayedCall,
  type RelayCall,
  type RelayedCallOptions,
  type RelayLinks,
  type RelayOutcome,
} from './relayed-call.ts'
import type { RawFields } from './relayed-fields.ts'
import { untilGone } from './until-gone.ts'

/**
 * Idle connections are dropped after this time, below the idle time of usual gateways: one that closes at the moment of its reuse
 * costs a request whose outcome is unknown.
 */
const IDLE_MS = 4_000
/** A client that takes longer over its upload than this, or over 64 KiB of it, is streamed to V2 as it comes. */
const ARRIVAL_MS = 100

export interface RelayOptions extends RelayedCallOptions {
  /** The base address of V2: the path of a request is added to its own. */
  readonly baseUrl: URL
  readonly connections: number
  /** The gate in front of these connections. */
  readonly gate: FairGate
  /** Longest wait for a connection, ms. */
  readonly acquireMs: number
  readonly byteBudget: ByteBudget
  readonly calls: RelayedCalls
}

/** The requests with a body that are relayed; `waiting` until enough of it has arrived. */
export type RelayedCalls = WeakMap<IncomingMessage, RelayedCall | 'waiting'>

export function createRelayedCalls(): RelayedCalls {
  return new WeakMap()
}

/** Sends requests on to V2, and its replies back, both as they are. */
export interface Relay {
  /**
   * Relays one request and answers it; resolves with what became of it once the last byte of its reply was handed to the client.
   * Never rejects.
   */
  handle(request: IncomingMessage, response: ServerResponse, call: RelayCall): Promise<RelayOutcome>
  close(): void
}

/**
 * Creates a relay over http-proxy-middleware: fields keep names, order and repetition in both directions, bodies are streamed and
 * not changed, trailers go along, and only `Host`, forwarding fields and what belongs to one connection are the adapter's own.
 * Where V2 cannot be reached, the client gets 503 `ADP_UPSTREAM_UNAVAILABLE`, for a write that may have left 504
 * `ADP_V2_OUTCOME_UNKNOWN`; when V2 dies in a body, the client's connection breaks too.
 */
export function createRelay(options: RelayOptions): Relay {
  const { baseUrl, connections, gate, events, byteBudget, calls } = options
  const isSecure = baseUrl.protocol === 'https:'
  const basePath = baseUrl.pathname.replace(/\/$/, '')
  const linkBase = `${baseUrl.origin}${basePath}`
  const linkStart = Buffer.from(linkBase)
  const agentOptions = { keepAlive: true, maxSockets: connections, timeout: IDLE_MS }
  const agent = isSecure ? new HttpsAgent(agentOptions) : new HttpAgent(agentOptions)
  // Read for each request: plain members cost less than those of a URL.
  const target = {
    protocol: baseUrl.protocol,
    hostname: baseUrl.hostname.replace(/^\[|\]$/g, ''),
    port: baseUrl.port,
    pathname: basePath,
  }
  const outgoing = createOutgoingOptions()
  const middleware = createProxyMiddleware({
    target,
    pathFilter: () => true,
    agent,
    ssl: outgoing.options,
    // A call sends its own body.
    buffer: new NoBody(),
    // The library writes the names of fields in lower case.
    selfHandleResponse: true,
    // Its default plugins would answer errors with the host and path of the request, and log them.
    ejectPlugins: true,
    plugins: [proxyEventsPlugin],
    on: {
      start: (_request, response) => {
        if (response instanceof CallResponse) outgoing.begin(response.path, fieldsOf(response.call))
      },
      proxyReq: (request, _incoming, response) => callOf(response)?.begin(request, isSecure),
      proxyRes: (reply, _request, response) => callOf(response)?.answer(reply),
      error: (cause, _request, response) => callOf(response)?.fail(cause),
      econnreset: (cause, _request, response) => callOf(response)?.fail(cause),
    },
  })
  const fieldsOf = ({ request, changesLinks }: RelayedCall): RawFields =>
    options.fields.toV2(request, { host: baseUrl.host, identity: changesLinks })
  const createRewriter = (
    { method }: IncomingMessage,
    { links }: RelayCall,
  ): (() => LinkRewriter) | undefined => {
    if (links === undefined || (method !== 'GET' && method !== 'HEAD')) return undefined
    return () => new LinkRewriter(linkStart, () => linksTo(links))
  }
  // Most clients know the adapter by the same address.
  let latest: { readonly base: string; readonly bytes: readonly LinkBytes[] } | undefined
  const linksTo = ({ base, nextBase }: RelayLinks): readonly LinkBytes[] => {
    if (latest?.base !== base)
      latest = { base, bytes: toLinkBytes([{ from: linkBase, to: base, nextTo: nextBase }]) }
    return latest.bytes
  }

  const start = (call: RelayedCall): void => {
    const { request } = call
    const { url = '/' } = request
    const response = new CallResponse(call, basePath + url)
    // For its filter the library would parse the target as a URL; the path is in the response.
    request.url = ''
    void middleware(request, response, (cause) => call.fail(toError(cause)))
    request.url = url
  }

  return {
    handle: async (request, response, call) => {
      let held: HeldBytes | undefined
      let leave: (() => void) | undefined
      try {
        if (call.body === undefined && hasBody(request)) {
          // Most bodies arrive at once: they need no stream, and their clients hold no connection meanwhile.
          calls.set(request, 'waiting')
          const own = (held = byteBudget.open(call.queueKey))
          const wait = { clock: options.clock, waitMs: ARRIVAL_MS }
          await bodyArrival(request, (count) => own.take(count), wait)
        }
        checkLength(request, call.body)
        leave =
          gate.tryEnter(call.queueKey) ??
          (await enterGate(gate, call.queueKey, options.acquireMs, untilGone(response)))
        if ((call.captureBytes ?? 0) > 0) held ??= byteBudget.open(call.queueKey)
        const relayed = new RelayedCall(request, response, call, held, createRewriter(request, call), options)
        if (calls.has(request)) calls.set(request, relayed)
        if (response.destroyed || response.writableEnded) relayed.fail(undefined)
        else start(relayed)
        return await relayed.outcome
      } catch (cause) {
        const error = cause instanceof AdapterError ? cause : notSent(cause)
        if (call.hold !== true && !response.destroyed && !response.writableEnded)
          sendError(response, error, events)
        return { kind: 'notSent', error }
      } finally {
        leave?.()
        held?.release()
      }
    },
    close: () => agent.destroy(),
  }
}

/**
 * What the library takes for the response, by which its hooks find the call: it would end the call when the response closes, but
 * that is for the call to decide.
 */
class CallResponse extends ServerResponse {
  readonly call: RelayedCall
  /** The path and query at V2. */
  readonly path: string

  constructor(call: RelayedCall, path: string) {
    super(call.request)
    this.call = call
    this.path = path
  }
}

/** What the library takes for the body of every request. */
class NoBody extends Stream {
  override pipe<Destination extends NodeJS.WritableStream>(destination: Destination): Destination {
    return destination
  }
}

function callOf(response: unknown): RelayedCall | undefined {
  return response instanceof CallResponse ? response.call : undefined
}

/** The options of `http.request`: the library completes and uses them right after its event `start`, in the same turn. */
interface OutgoingOptions {
  readonly options: object
  /** Sets the target and the fields of the next request. */
  begin(path: string, fields: RawFields): void
}

const NO_FIELDS = {}

/**
 * One object serves all requests of a relay: accessors that each request defines for itself end up in V8's old space and keep what
 * the request held from being collected early. The library would put the fields into an object, by lower-case name: Node also takes
 * them as an array, and keeps that to the letter.
 */
function createOutgoingOptions(): OutgoingOptions {
  let target = '/'
  let fields: RawFields = []
  let isFilled = false
  return {
    options: {
      // No field is added, such as the framing of a POST without a body.
      setDefaultHeaders: false,
      maxHeaderSize: MAX_HEADER_BYTES,
      // The library searches the fields before it sends them; these are checked already.
      get headers() {
        return isFilled ? fields : NO_FIELDS
      },
      set headers(_byName) {},
      get path() {
        return target
      },
      // Set last, right before the request is created.
      set path(_joined) {
        isFilled = true
      },
    },
    begin: (path, own) => {
      target = path
      fields = own
      isFilled = false
    },
  }
}

/** A body that is sent with another length than its own would be read as two requests, or never end. */
function checkLength({ headers }: IncomingMessage, body: Buffer | undefined): void {
  const length = headers['content-length']
  if (body === undefined || length === undefined || Number(length) === body.length) return
  throw new AdapterError('ADP_INTERNAL', 'The body of a relayed request is not as long as it says.')
}

function notSent(cause: unknown): AdapterError {
  return new AdapterError('ADP_UPSTREAM_UNAVAILABLE', 'Nothing was sent.', { cause })
}

function toError(cause: unknown): Error {
  return cause instanceof Error ? cause : new AdapterError('ADP_INTERNAL', 'The request was not relayed.')
}
