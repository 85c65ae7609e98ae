import type { Socket } from 'node:net'

import { Client, type Dispatcher, errors } from 'undici'

import type { Clock } from '../clock.ts'
import { createQuota, FairQueue, type QueueKey, type Refusal, soleQueue } from './fair-queue.ts'
import { createConnector, type UpstreamRoute } from './route.ts'
import { skipContinue } from './skip-continue.ts'

/** A call that was sent to the upstream, reported once its status line has arrived or the call has failed. */
export interface UpstreamCall {
  readonly kind: 'write' | 'batch' | 'read' | 'passThrough'
  readonly status: number | undefined
  /** The time in milliseconds from the start of writing the request to the status line or the failure. */
  readonly durationMs: number
}

export type OnCall = (call: UpstreamCall) => void

export interface UpstreamTimeouts {
  readonly connectMs: number
  /** Maximum time in milliseconds from the end of the request to the status line. */
  readonly headersMs: number
  /** Maximum time in milliseconds between two pieces of the body. Default: 20,000. */
  readonly bodyMs?: number | undefined
}

const BODY_MS = 20_000
const IDLE_MS = 4_000
const ACQUIRE_MS = 10_000

/**
 * Returns the options of every connection to an upstream. Connections use HTTP/1.1, because with HTTP/2 undici does not show when a request
 * is sent. Idle connections are closed after 4 s, before usual gateways close them: if a gateway closed a connection just as a request
 * reused it, the outcome of the request would be unknown. A longer idle time that the server names is ignored, because the server does not
 * know the gateways in front of it.
 */
export function toClientOptions(
  { connectMs, headersMs, bodyMs = BODY_MS }: UpstreamTimeouts,
  route?: UpstreamRoute,
  onOpened?: (socket: Socket) => void,
): Client.Options {
  const connect = createConnector(connectMs, route)
  return {
    pipelining: 1,
    allowH2: false,
    connect: (target, done) =>
      connect(target, (...[error, socket]) => {
        if (error !== null) {
          done(error, null)
          return
        }
        skipContinue(socket)
        onOpened?.(socket)
        done(null, socket)
      }),
    headersTimeout: headersMs,
    bodyTimeout: bodyMs,
    keepAliveTimeout: IDLE_MS,
    keepAliveMaxTimeout: IDLE_MS,
  }
}

/** A request as the connection pool sees it: its state, and the callbacks that the pool calls. */
export interface ConnectionUser extends Dispatcher.DispatchHandler {
  isDone(): boolean
  /** Called once, when the request is done. `replied` is true if the end of the reply has just arrived. */
  onDone: ((replied: boolean) => void) | undefined
  /** Set when the request gets a connection. Returns true if this connection failed, and false if it was closed normally. */
  wasReset: (() => boolean) | undefined
  onRefused(): void
  onResponseError(controller: Dispatcher.DispatchController | undefined, error: Error): void
}

export interface ConnectionWait {
  readonly queueKey?: QueueKey | undefined
  /** Maximum wait in milliseconds, at most `acquireMs`. If `undefined`, the request waits until it gets a connection or is done. */
  readonly waitMs?: number | undefined
  readonly signal?: (() => AbortSignal) | undefined
}

/** The connections to one upstream. Clients share the connections fairly. Each connection carries one request at a time. */
export interface Connections {
  /** Sends a request over a free connection, or queues the request until the fair queue assigns a connection to its client. */
  dispatch(request: Dispatcher.DispatchOptions, user: ConnectionUser, wait?: ConnectionWait): void
  /**
   * Reserves one of the `connections` for a connection that the caller opens itself. Calls `use` with a function that ends the reservation,
   * or calls `refused` if the caller may not open a connection.
   */
  reserve(wait: ConnectionWait, use: (release: () => void) => void, refused: () => void): void
  held(): number
  /** Waits until all earlier requests have ended, then closes the connections. Later requests fail. */
  close(): Promise<void>
}

interface ConnectionsOptions {
  readonly connections: number
  readonly timeouts: UpstreamTimeouts
  /** The proxy and the certificates. Default: a direct connection. */
  readonly route?: UpstreamRoute | undefined
  readonly clock: Clock
  /** The upper limit in milliseconds for `waitMs` of a request. Default: 10,000. */
  readonly acquireMs?: number | undefined
  readonly onRefusal?: ((reason: Refusal) => void) | undefined
  /** Opens one connection. By default, undici opens it. */
  readonly open?: OpenConnection | undefined
}

/** Maximum number of requests with `waitMs` that may wait for a connection at the same time. Owners share this number. */
const MAX_WAITING = 1_024

/** One connection. If it was closed, its next request opens it again. */
export interface Connection {
  readonly client: Pick<Dispatcher, 'dispatch'> & { close(): Promise<void> }
  /** Returns true if the connection failed, and false if it was closed normally. */
  readonly wasReset: () => boolean
}

export type OpenConnection = (origin: string, timeouts: UpstreamTimeouts, route?: UpstreamRoute) => Connection

/**
 * Creates the connections, each of which is opened on first use. The connections replace undici's `Pool`, which gives a connection its next
 * request only once the connection is idle. Here a connection gets its next request as soon as the previous reply ends. undici then needs
 * no timer for idle connections, and no turn of the event loop to find out whether a connection was closed. Posting a mark takes 33 us of
 * processor time, against 40 us with `Pool` (decision 005).
 */
export function createConnections(origin: string, options: ConnectionsOptions): Connections {
  const {
    connections,
    timeouts,
    route,
    clock,
    acquireMs = ACQUIRE_MS,
    onRefusal,
    open: connect = openConnection,
  } = options
  const all: Connection[] = []
  const free: Connection[] = []
  const quota = createQuota(connections)
  const queue = new FairQueue(quota, clock, MAX_WAITING)
  const addConnection = (): Connection => {
    const connection = connect(origin, timeouts, route)
    all.push(connection)
    return connection
  }
  let whenIdle: (() => void) | undefined
  const serveNext = (): void => {
    queue.serve()
    if (queue.size === 0 && quota.held() === 0) whenIdle?.()
  }
  const closeAll = async (): Promise<void> => {
    if (queue.size > 0 || quota.held() > 0) await new Promise<void>((resolve) => (whenIdle = resolve))
    await Promise.all(all.map(({ client }) => client.close()))
  }
  let closing: Promise<void> | undefined
  const release = (holder: string, connection?: Connection): void => {
    if (connection !== undefined) free.push(connection)
    quota.release(holder)
    serveNext()
  }
  const send = (request: Dispatcher.DispatchOptions, user: ConnectionUser, holder: string): void => {
    if (user.isDone()) {
      release(holder)
      return
    }
    // The quota has admitted the request, so a connection is free, or another connection may be opened.
    const connection = free.pop() ?? addConnection()
    user.wasReset = connection.wasReset
    // While undici handles a failure, it accepts no request on the connection, so the connection is released only afterwards.
    user.onDone = (replied) =>
      replied ? release(holder, connection) : queueMicrotask(() => release(holder, connection))
    connection.client.dispatch(request, user)
  }
  const enter = (
    { queueKey = soleQueue, waitMs, signal }: ConnectionWait,
    admit: (holder: string) => void,
    refused: () => void,
  ): void =>
    queue.enter({
      queueKey,
      priority: 'write',
      waitMs: waitMs === undefined ? undefined : Math.min(waitMs, acquireMs),
      signal,
      admit,
      refuse: (reason) => {
        onRefusal?.(reason)
        refused()
      },
    })
  return {
    reserve: (wait, use, refused) => enter(wait, (holder) => use(() => release(holder)), refused),
    dispatch: (request, user, wait = {}) => {
      if (closing === undefined)
        enter(
          wait,
          (holder) => send(request, user, holder),
          () => user.onRefused(),
        )
      else user.onResponseError(undefined, new errors.ClientClosedError())
    },
    held: () => quota.held(),
    close: () => (closing ??= closeAll()),
  }
}

const openConnection: OpenConnection = (origin, timeouts, route) => {
  let socket: Socket | undefined
  const client = new Client(
    origin,
    toClientOptions(timeouts, route, (opened) => (socket = opened)),
  )
  return { client, wasReset: () => (socket?.errored ?? null) !== null }
}
