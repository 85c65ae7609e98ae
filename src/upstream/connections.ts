import type { Socket } from 'node:net'

import { buildConnector, Client, type Dispatcher, errors } from 'undici'

import type { Clock } from '../clock.ts'
import { createQuota, FairQueue, type QueueKey, type Refusal, soleQueue } from './fair-queue.ts'
import { readOverContinue } from './read-over-continue.ts'

/** A call that left for the upstream, up to its status line. */
export interface UpstreamCall {
  readonly kind: 'write' | 'batch' | 'read' | 'passThrough'
  /** Undefined: no reply arrived. */
  readonly status: number | undefined
  /** From the request on the connection to the status line, or to the end without one. */
  readonly durationMs: number
}

/** Called for every call that left. */
export type OnCall = (call: UpstreamCall) => void

/** How long an upstream may take. */
export interface UpstreamTimeouts {
  readonly connectMs: number
  /** From the request sent to the status line. */
  readonly headersMs: number
  /** Between two pieces of the body. Default 20,000. */
  readonly bodyMs?: number | undefined
}

const BODY_MS = 20_000
const IDLE_MS = 4_000
/** How long a request with a client waits for a connection. */
const ACQUIRE_MS = 10_000

/**
 * The options of every connection to an upstream: HTTP/1.1, since with HTTP/2 undici does not show when a request leaves. Idle
 * connections are dropped after 4 s, below the idle time of usual gateways: one that closes at the moment of its reuse costs a
 * request whose outcome is unknown. A server that names a longer time does not extend it: it knows nothing of what is between it and here.
 * `onOpened` is called with each socket.
 */
export function toClientOptions(
  { connectMs, headersMs, bodyMs = BODY_MS }: UpstreamTimeouts,
  onOpened?: (socket: Socket) => void,
): Client.Options {
  const connect = buildConnector({ allowH2: false, timeout: connectMs })
  return {
    pipelining: 1,
    allowH2: false,
    connect: (target, done) =>
      connect(target, (...[error, socket]) => {
        if (error !== null) {
          done(error, null)
          return
        }
        readOverContinue(socket)
        onOpened?.(socket)
        done(null, socket)
      }),
    headersTimeout: headersMs,
    bodyTimeout: bodyMs,
    keepAliveTimeout: IDLE_MS,
    keepAliveMaxTimeout: IDLE_MS,
  }
}

/** A request's handler, as far as its connection goes. */
export interface ConnectionUser extends Dispatcher.DispatchHandler {
  /** True once it needs no connection any longer. */
  isDone(): boolean
  /** Called at the moment when it is done, once; `replied`: the end of the reply has come just now. */
  onDone: ((replied: boolean) => void) | undefined
  /** Set when it gets a connection: true once that connection has failed, rather than closed. */
  wasReset: (() => boolean) | undefined
  /** Called where no connection becomes free for it in time. */
  onRefused(): void
  onResponseError(controller: Dispatcher.DispatchController | undefined, error: Error): void
}

/** How a request waits for a connection. */
export interface ConnectionWait {
  readonly queueKey?: QueueKey | undefined
  /** Longest wait, ms, but never longer than `acquireMs`; undefined: as long as its handler is not done. */
  readonly waitMs?: number | undefined
  readonly signal?: (() => AbortSignal) | undefined
}

/** Connections to one upstream, divided between its users, with one request at a time on each. */
export interface Connections {
  /** Sends a request over a free connection, or over the next that becomes free for its queue key. */
  dispatch(request: Dispatcher.DispatchOptions, user: ConnectionUser, wait?: ConnectionWait): void
  /**
   * Calls one of the two, once: `use` when a connection that the caller opens itself may be used, with the function to call when it no
   * longer is.
   */
  enter(wait: ConnectionWait, use: (leave: () => void) => void, refused: () => void): void
  /** Connections in use. */
  held(): number
  /** Waits for earlier requests, then closes the connections; a later request fails. */
  close(): Promise<void>
}

interface ConnectionsOptions {
  readonly connections: number
  readonly timeouts: UpstreamTimeouts
  readonly clock: Clock
  /** Longest wait for a connection of a request that has `waitMs`, ms. Default 10,000. */
  readonly acquireMs?: number | undefined
  readonly onRefusal?: ((reason: Refusal) => void) | undefined
  /** Opens one connection. Default: with undici. */
  readonly open?: OpenConnection | undefined
}

/** Requests that may wait for a connection; each owner has its share of these. */
const MAX_WAITING = 1_024

/** One connection, opened again by its next request where it was closed. */
export interface Connection {
  readonly client: Pick<Dispatcher, 'dispatch'> & { close(): Promise<void> }
  /** True once it has failed, rather than closed. */
  readonly wasReset: () => boolean
}

/** Creates a connection to an origin. */
export type OpenConnection = (origin: string, timeouts: UpstreamTimeouts) => Connection

/**
 * Creates the connections, each opened when it is needed first. Not undici's `Pool`: that gives a connection its next request
 * once it is idle, here it gets it while the reply before ends. Undici then sets no timer for an idle connection and spends no
 * turn of the event loop on finding out whether it was closed meanwhile: 33 us of processor time a mark in place of 40 (decision 005).
 */
export function createConnections(origin: string, options: ConnectionsOptions): Connections {
  const {
    connections,
    timeouts,
    clock,
    acquireMs = ACQUIRE_MS,
    onRefusal,
    open: connect = openConnection,
  } = options
  const all: Connection[] = []
  const free: Connection[] = []
  const quota = createQuota(connections)
  const queue = new FairQueue(quota, clock, MAX_WAITING)
  const open = (): Connection => {
    const connection = connect(origin, timeouts)
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
  const leave = (holder: string, connection?: Connection): void => {
    if (connection !== undefined) free.push(connection)
    quota.release(holder)
    serveNext()
  }
  const send = (request: Dispatcher.DispatchOptions, user: ConnectionUser, holder: string): void => {
    if (user.isDone()) {
      leave(holder)
      return
    }
    // The quota has a place, so there is a free connection, or room for another.
    const connection = free.pop() ?? open()
    user.wasReset = connection.wasReset
    // In the middle of a failure undici takes no other request.
    user.onDone = (replied) =>
      replied ? leave(holder, connection) : queueMicrotask(() => leave(holder, connection))
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
    enter: (wait, use, refused) => enter(wait, (holder) => use(() => leave(holder)), refused),
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

function openConnection(origin: string, timeouts: UpstreamTimeouts): Connection {
  let socket: Socket | undefined
  const client = new Client(
    origin,
    toClientOptions(timeouts, (opened) => (socket = opened)),
  )
  return { client, wasReset: () => (socket?.errored ?? null) !== null }
}
