import { EventEmitter } from 'node:events'
import type { ServerResponse } from 'node:http'

import type { Dispatcher } from 'undici'

import { readRawBody } from '../../src/http/body.ts'
import { readTarget } from '../../src/http/request-target.ts'
import type { Client } from '../../src/partners/partner.ts'
import { createByteBudget } from '../../src/proxy/byte-budget.ts'
import type { ProxyContext } from '../../src/proxy/context.ts'
import { createRelays, type Relays } from '../../src/proxy/forwarder.ts'
import { handleLegacy } from '../../src/proxy/handle-legacy.ts'
import type { StageEntry } from '../../src/rollout/decide.ts'
import { createWholeReader, type OpenConnection } from '../../src/upstream/index.ts'
import { decodeBatchReply, noBatchLimits, type PartReply } from '../../src/v2/index.ts'
import type { WriteContext } from '../../src/writes/context.ts'
import type { StoredReply } from '../../src/writes/reply.ts'
import { incomingMessage } from '../support/incoming-message.ts'
import type { BatchRequest, ReplyListener } from './simulated-instance.ts'
import { SEND_FIELD } from './simulated-service.ts'
import type { World } from './world.ts'

export const V2_ORIGIN = 'http://v2/'
const SET_URL = '/V2/Attendance/'

interface RelayOptions {
  readonly world: World
  readonly context: WriteContext
  readonly openV2: OpenConnection
  readonly headersMs: number
  readonly connections: number
  readonly authorise: ProxyContext['authorise']
}

interface RelayedRequest {
  readonly request: BatchRequest
  readonly client: Client
  readonly entry: StageEntry
  readonly receivedMs: number
  /** The journal of this request, which tells `listener` when a batch begins. */
  readonly journal: WriteContext['journal']
  readonly noteUnrecorded: (partner: string) => void
  readonly listener: ReplyListener
}

/** Creates the product's path of a write to V2, from the handler to the connection, without an HTTP server in front of it. */
export function createSimulatedRelay({
  world,
  context,
  openV2: open,
  headersMs,
  connections,
  authorise,
}: RelayOptions) {
  const byteBudget = createByteBudget(1e9)
  const timeouts = { connectMs: 500, headersMs, bodyMs: headersMs }
  const options = {
    ...{ connections, byteBudget, open, timeouts, clock: context.clock, events: context.events },
    uploads: new WeakMap(),
    onCall: () => undefined,
    onFailure: () => undefined,
    onRefusal: () => undefined,
  }
  const relays = createRelays(options)
  const proxy = {
    ...{ ...context, authorise, byteBudget },
    v2Reader: createWholeReader(toReaderConnections(world, open(V2_ORIGIN, timeouts)), 1_000_000),
    relays: { of: (baseUrl: URL) => readWhole(relays.of(baseUrl)) },
    rewriteLinks: false,
    limits: () => noBatchLimits,
    comparison: { onThrottled: () => undefined },
  }
  return {
    /** Serves one request. Throws the handler's error if the reply has not begun. Otherwise breaks the connection. */
    serve: async ({
      request,
      client,
      entry,
      receivedMs,
      journal,
      noteUnrecorded,
      listener,
    }: RelayedRequest) => {
      world.markStreamUse()
      const message = toMessage(request)
      const response = new SimulatedResponse((whole) => deliverReply(request.kind, whole, listener))
      const exchange = {
        request: message,
        response: response as unknown as ServerResponse,
        target: readTarget(message.url ?? ''),
        ...{ prefix: '', client, entry, receivedMs },
        ...({ side: 'v2', kind: request.kind, unit: request.unit } as const),
        ...{ copyBytes: 0, result: { parts: new Map() } },
      }
      try {
        await handleLegacy({ ...proxy, journal, noteUnrecorded } as unknown as ProxyContext, exchange)
      } catch (cause) {
        if (!response.headersSent) throw cause
        response.destroy()
      }
    },
    close: () => relays.close(),
  }
}

/** Makes a relay read every body whole before it forwards it, because streamed bodies would need real connections. */
const readWhole = (relay: ReturnType<Relays['of']>): Pick<typeof relay, 'forward'> => ({
  forward: async (request, response, call) => {
    const body = call.body ?? (await readRawBody(request, Infinity, () => undefined))
    return relay.forward(request, response, { ...call, body })
  },
})

function toMessage({ kind, authorization, contentType, body, send }: BatchRequest) {
  const url = `${SET_URL}${kind === 'batch' ? '$batch' : 'AttendanceRecords'}`
  const headers = {
    host: 'adapter',
    'content-type': contentType,
    'content-length': String(body.length),
    authorization,
    'ocp-apim-subscription-key': 'key',
    [SEND_FIELD]: String(send),
  }
  const message = Object.assign(incomingMessage({ url, headers }), { method: 'POST' })
  message.push(body)
  message.push(null)
  return message
}

/** A reply as its client received it, or `undefined` if the connection broke. */
type WholeReply =
  { readonly status: number; readonly contentType: string | undefined; readonly body: string } | undefined

/** Delivers V2's stored reply to a client that resends its batch. */
export function deliverStoredReply({ status, fields, body }: StoredReply, listener: ReplyListener): void {
  const at = fields.findIndex((name) => name.toLowerCase() === 'content-type')
  deliverReply('batch', { status, contentType: fields[at + 1], body: body.toString() }, listener)
}

function deliverReply(kind: BatchRequest['kind'], reply: WholeReply, listener: ReplyListener): void {
  if (reply === undefined) {
    listener.onBroken()
    return
  }
  const { status, contentType = '', body } = reply
  // A 201 or a V2 error is about the record itself. Any other reply refuses the whole request.
  if (kind === 'record' && (status === 201 || body.includes('"ErrorCode"'))) {
    listener.onPart(0, { status, json: body } as PartReply)
    listener.onEnd()
    return
  }
  if (status !== 200 || !contentType.startsWith('multipart/')) {
    const [, code = ''] = /"code":"([^"]*)"/.exec(body) ?? []
    listener.onWholeReply(status, code)
    return
  }
  const { parts } = decodeBatchReply(Buffer.from(body), contentType)
  for (const [position, part] of parts.entries())
    listener.onPart(position, { status: part.status, json: part.body } as PartReply)
  listener.onEnd()
}

/** A `ServerResponse` with only the members that the handlers use. */
class SimulatedResponse extends EventEmitter {
  headersSent = false
  destroyed = false
  closed = false
  writableEnded = false
  writableFinished = false
  sendDate = true
  statusCode = 200
  readonly req = { socket: { readableEnded: false } }
  private readonly fields = new Map<string, string>()
  private readonly onReply: (reply: WholeReply) => void
  private text = ''

  constructor(onReply: (reply: WholeReply) => void) {
    super()
    this.onReply = onReply
  }

  setHeader(name: string, value: string | number): this {
    this.fields.set(name.toLowerCase(), String(value))
    return this
  }

  getHeader(name: string): string | undefined {
    return this.fields.get(name.toLowerCase())
  }

  writeHead(status: number, ...given: readonly unknown[]): this {
    const fields = given.at(-1)
    const pairs = Array.isArray(fields) ? fields : Object.entries(fields ?? {}).flat()
    for (let at = 0; at + 1 < pairs.length; at += 2) this.setHeader(String(pairs[at]), String(pairs[at + 1]))
    this.statusCode = status
    this.headersSent = true
    return this
  }

  flushHeaders(): void {
    this.headersSent = true
  }

  write(chunk: string | Uint8Array): boolean {
    this.headersSent = true
    this.text += typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString()
    return true
  }

  end(chunk: string | Uint8Array = ''): this {
    this.write(chunk)
    this.writableEnded = true
    queueMicrotask(() => {
      if (this.closed) return
      this.writableFinished = true
      this.emit('finish')
      this.onReply({ status: this.statusCode, contentType: this.getHeader('content-type'), body: this.text })
      this.close()
    })
    return this
  }

  destroy(): this {
    if (this.closed) return this
    this.destroyed = true
    this.onReply(undefined)
    this.close()
    return this
  }

  private close(): void {
    this.closed = true
    this.emit('close')
  }
}

/** Creates the connections for reading marks of V2. The reader uses Node.js streams, so the world must wait for them. */
function toReaderConnections(world: World, { client }: ReturnType<OpenConnection>): Dispatcher {
  const dispatch: Dispatcher['dispatch'] = (options, handler) => {
    const streaming: Dispatcher.DispatchHandler = {
      onRequestStart: (...given) => handler.onRequestStart?.(...given),
      onResponseStart: (...given) => {
        world.markStreamUse()
        handler.onResponseStart?.(...given)
      },
      onResponseData: (...given) => handler.onResponseData?.(...given),
      onResponseEnd: (...given) => handler.onResponseEnd?.(...given),
      onResponseError: (...given) => {
        world.markStreamUse()
        handler.onResponseError?.(...given)
      },
    }
    return client.dispatch(options, streaming)
  }
  return { dispatch } as unknown as Dispatcher
}

/** Makes `setTimeout`, which Node.js streams use, wait in simulated time until the returned function is called. */
export function replaceTimers(world: World): () => void {
  const real = { setTimeout, clearTimeout }
  globalThis.setTimeout = ((act: () => void, ms: number) => ({
    cancel: world.after(world.current, ms, act),
  })) as unknown as typeof setTimeout
  globalThis.clearTimeout = (timer: unknown) => {
    if (typeof timer === 'object' && timer !== null && 'cancel' in timer) (timer.cancel as () => void)()
  }
  return (): void => void Object.assign(globalThis, real)
}
