import type { Socket } from 'node:net'

import { buildConnector, Client, type Dispatcher, errors } from 'undici'

import type { Clock } from '../clock.ts'
import { createQuota, FairQueue, type QueueKey, type Refusal, soleQueue } from './fair-queue.ts'
import { skipContinue } from './skip-continue.ts'

/** A call that was sent to the upstream, up to its status line. */
export interface UpstreamCall {
  readonly kind: 'write' | 'batch' | 'read' | 'passThrough'
  /** `undefined` if no reply arrived. */
  readonly status: number | undefined
  /** Time from writing the request to the status line, or to the failure. */
  readonly durationMs: number
}

export type OnCall = (call: UpstreamCall) => void

export interface UpstreamTimeouts {
  readonly connectMs: number
  /** Time from the end of the request to the status line. */
  readonly headersMs: number
  /** Time between two pieces of the body. Default 20,000. */
  readonly bodyMs?: number | undefined
}

const BODY_MS = 20_000
const IDLE_MS = 4_000
/** How long a request with a client waits for a connection, in milliseconds. */
const ACQUIRE_MS = 10_000

/**
 * Returns the options of every connection to an upstream. They use HTTP/1.1, because with HTTP/2 undici does not show when a request is
 * sent. Idle connections are closed after 4 s, before usual gateways close them: if a connection closes while it is reused, the request has
 * an unknown outcome. A longer time from the server does not count, because the server does not know the gateways before it.
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

/** The callbacks that a request gives to the connection pool. */
export interface ConnectionUser extends Dispatcher.DispatchHandler {
  isDone(): boolean
  /** Called once when the request is done. `replied` is true if the end of the reply has just arrived. */
  onDone: ((replied: boolean) => void) | undefined
  /** Set when the request gets a connection. Returns true if that connection failed rather than closed. */
  wasReset: (() => boolean) | undefined
  /** Called if no connection becomes free in time. */
  onRefused(): void
  onResponseError(controller: Dispatcher.DispatchController | undefined, error: Error): void
}

export interface ConnectionWait {
  readonly queueKey?: QueueKey | undefined
  /** Longest wait in milliseconds, capped at `acquireMs`. If `undefined`, the request waits until it is done. */
  readonly waitMs?: number | undefined
  readonly signal?: (() => AbortSignal) | undefined
}

/** Connections to one upstream, shared fairly between clients, with one request at a time on each. */
export interface Connections {
  /** Sends a request over a free connection, or over the next one that becomes free for its queue key. */
  dispatch(request: Dispatcher.DispatchOptions, user: ConnectionUser, wait?: ConnectionWait): void
  /** Reserves a connection that the caller opens itself. Calls `use`, with the function that gives it back, or `refused`. */
  reserve(wait: ConnectionWait, use: (release: () => void) => void, refused: () => void): void
  held(): number
  /** Waits for earlier requests, then closes the connections. Later requests fail. */
  close(): Promise<void>
}

interface ConnectionsOptions {
  readonly connections: number
  readonly timeouts: UpstreamTimeouts
  readonly clock: Clock
  /** Longest wait for a connection of a request that has `waitMs`, in milliseconds. Default 10,000. */
  readonly acquireMs?: number | undefined
  readonly onRefusal?: ((reason: Refusal) => void) | undefined
  /** Opens one connection. Default: with undici. */
  readonly open?: OpenConnection | undefined
}

/** Maximum number of requests that wait for a connection, divided between owners. */
const MAX_WAITING = 1_024

/** One connection. Its next request opens it again after it was closed. */
export interface Connection {
  readonly client: Pick<Dispatcher, 'dispatch'> & { close(): Promise<void> }
  /** Returns true if the connection failed rather than closed. */
  readonly wasReset: () => boolean
}

export type OpenConnection = (origin: string, timeouts: UpstreamTimeouts) => Connection

/**
 * Creates the connections, each of which is opened on first use. undici's `Pool` is not used: it gives a connection its next request once
 * the connection is idle, while this pool does so as the previous reply ends. undici then needs neither a timer for an idle connection nor
 * a turn of the event loop to find out whether it was closed: 33 us of processor time per mark instead of 40 (decision 005).
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
  const addConnection = (): Connection => {
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
    // The quota has a place, so there is a free connection or room for another.
    const connection = free.pop() ?? addConnection()
    user.wasReset = connection.wasReset
    // While it handles a failure, undici accepts no other request.
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

function openConnection(origin: string, timeouts: UpstreamTimeouts): Connection {
  let socket: Socket | undefined
  const client = new Client(
    origin,
    toClientOptions(timeouts, (opened) => (socket = opened)),
  )
  return { client, wasReset: () => (socket?.errored ?? null) !== null }
}
