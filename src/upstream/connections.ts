import type { Socket } from 'node:net'

import { buildConnector, Client, type Dispatcher, errors } from 'undici'

import { FairLine } from './fairness/fair-line.ts'
import { createQuota } from './fairness/quota.ts'
import { holderOf, type QueueKey, soleQueue } from './fairness/queue-key.ts'

/** A request's handler, as far as its connection goes. */
export interface ConnectionUser extends Dispatcher.DispatchHandler {
  /** True once it needs no connection any longer. */
  isDone(): boolean
  /** Called at the moment when it is done, once; `replied`: the end of the reply has come just now. */
  onDone: ((replied: boolean) => void) | undefined
  /** Set when it gets a connection: true once that connection has failed, rather than closed. */
  wasReset?: (() => boolean) | undefined
  onResponseError(controller: Dispatcher.DispatchController | undefined, error: Error): void
}

/** How long an upstream may take. */
export interface UpstreamTimeouts {
  readonly connectMs: number
  /** From the request sent to the status line. */
  readonly headersMs: number
  /** Between two pieces of the body. */
  readonly bodyMs: number
}

/**
 * The options of every connection to an upstream: HTTP/1.1, since with HTTP/2 undici does not show when a request leaves. Idle
 * connections are dropped after 4 s, below the idle time of usual gateways: one that closes at the moment of its reuse costs a
 * request whose outcome is unknown.
 */
export function toClientOptions({ connectMs, headersMs, bodyMs }: UpstreamTimeouts): Client.Options {
  return {
    pipelining: 1,
    allowH2: false,
    connect: { timeout: connectMs },
    headersTimeout: headersMs,
    bodyTimeout: bodyMs,
    keepAliveTimeout: 4_000,
  }
}

/** Connections to one upstream, with one request at a time on each. */
export interface Connections {
  /**
   * Sends a request over a free connection, or over the next that becomes free for its queue key: owners take turns, those of one
   * owner go in the order of the calls.
   */
  dispatch(request: Dispatcher.DispatchOptions, user: ConnectionUser, queueKey?: QueueKey): void
  /** Waits for earlier requests, then closes the connections; a later request fails. */
  close(): Promise<void>
}

interface Connection {
  readonly client: Client
  readonly onDone: (replied: boolean) => void
  readonly wasReset: () => boolean
  busy: boolean
  /** Whose share it counts to while it is busy. */
  holder: string
  /** While it is given requests: one that ends at once must not give it the next from within, thousands would nest. */
  feeding: boolean
}

interface Waiting {
  readonly queueKey: QueueKey
  readonly request: Dispatcher.DispatchOptions
  readonly user: ConnectionUser
}

/**
 * Creates at the most `count` connections, each when it is needed first. Like undici's `Pool`, but that a connection gets its
 * next request while the one before ends, not once it is idle: undici then sets no timer for an idle connection and spends no
 * turn of the event loop on finding out whether it was closed meanwhile. A mark takes a sixth less processor time so
 * (decision 005).
 */
export function createConnections(origin: string, count: number, timeouts: UpstreamTimeouts): Connections {
  const options = toClientOptions(timeouts)
  const connect = buildConnector({ allowH2: false, timeout: timeouts.connectMs })
  const all: Connection[] = []
  const free: Connection[] = []
  const waiting = new FairLine<Waiting>()
  const quota = createQuota(count)
  const mayServe = (holder: string): boolean => quota.mayTake(holder)
  let closing: Promise<void> | undefined
  let whenNoneWaits: (() => void) | undefined

  const serve = (connection: Connection, { request, user, queueKey }: Waiting): void => {
    if (user.isDone()) return
    connection.holder = holderOf(queueKey)
    quota.take(connection.holder)
    user.onDone = connection.onDone
    user.wasReset = connection.wasReset
    connection.client.dispatch(request, user)
    connection.busy = !user.isDone()
  }
  /** Serves `first`, which may pass those that wait, or those in their turn. */
  const feed = (connection: Connection, first?: Waiting): void => {
    connection.feeding = true
    if (first !== undefined) serve(connection, first)
    while (!connection.busy) {
      const next = waiting.shift(mayServe)
      if (next === undefined) break
      serve(connection, next)
    }
    connection.feeding = false
    if (!connection.busy) free.push(connection)
    if (waiting.size === 0) whenNoneWaits?.()
  }
  const takeFree = (): Connection | undefined => free.pop() ?? (all.length < count ? open() : undefined)
  /** A place that one owner releases may be enough for several calls of others. */
  const feedOthers = (): void => {
    while (waiting.size > 0) {
      const connection = takeFree()
      if (connection === undefined) return
      feed(connection)
      if (!connection.busy) return
    }
  }
  const feedAll = (connection: Connection): void => {
    feed(connection)
    feedOthers()
  }
  const open = (): Connection => {
    let socket: Socket | undefined
    const connection: Connection = {
      client: new Client(origin, {
        ...options,
        connect: (target, done) =>
          connect(target, (...[error, opened]) => {
            socket = opened ?? undefined
            if (error === null) done(null, opened)
            else done(error, null)
          }),
      }),
      wasReset: () => (socket?.errored ?? null) !== null,
      onDone: (replied) => {
        connection.busy = false
        quota.release(connection.holder)
        if (connection.feeding) return
        // In the middle of a failure undici takes no other request.
        if (replied) feedAll(connection)
        else
          queueMicrotask(() => {
            feedAll(connection)
          })
      },
      busy: false,
      holder: '',
      feeding: false,
    }
    all.push(connection)
    return connection
  }
  const closeAll = async (): Promise<void> => {
    if (waiting.size > 0)
      await new Promise<void>((resolve) => {
        whenNoneWaits = resolve
      })
    await Promise.all(all.map(({ client }) => client.close()))
  }
  return {
    dispatch: (request, user, queueKey = soleQueue) => {
      if (closing !== undefined) {
        user.onResponseError(undefined, new errors.ClientClosedError())
        return
      }
      const call = { queueKey, request, user }
      const alone = waiting.size === 0 && mayServe(holderOf(queueKey))
      if (!alone) waiting.push(call)
      const connection = takeFree()
      if (connection !== undefined) feed(connection, alone ? call : undefined)
      else if (alone) waiting.push(call)
    },
    close: () => (closing ??= closeAll()),
  }
}
