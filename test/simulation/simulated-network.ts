import { type Dispatcher, errors } from 'undici'

import type { OpenConnection } from '../../src/upstream/index.ts'
import type { Actor, World } from './world.ts'

export interface ServiceReply {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body: string
}

/** A request as it arrives at a service. */
export interface ServiceRequest {
  readonly method: string
  readonly path: string
  /** The header values by lower-case name. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** The delays and faults of one exchange. */
export interface Journey {
  /** True if the connection cannot be made, so that the request is not sent. */
  readonly refused?: boolean
  /** The time until the request arrives at the service, or `undefined` if it never arrives. */
  readonly thereMs: number | undefined
  /** The time until the reply arrives at the client, or `undefined` if it never arrives. */
  readonly backMs: number | undefined
  readonly cutAfter?: number | undefined
  /** The time after which the connection breaks if the request or the reply never arrives, or `undefined` if it stays open and silent. */
  readonly breaksAfterMs?: number | undefined
}

/** Serves a request, and calls `answer` when the reply leaves. The service continues even if the client disconnects. */
export type Serve = (request: ServiceRequest, answer: (reply: ServiceReply) => void) => void

export interface NetworkOptions {
  readonly world: World
  readonly actor: Actor
  readonly service: Actor
  readonly serve: Serve
  readonly draw: (request: ServiceRequest) => Journey
  /** Called when a request is written to its connection. */
  readonly onLeave: (request: ServiceRequest, actor: Actor) => void
}

/** Creates a function that opens connections over a simulated network and replaces the corresponding function of undici. */
export function createNetwork({
  world,
  actor,
  service,
  serve,
  draw,
  onLeave,
}: NetworkOptions): OpenConnection {
  return (_origin, { headersMs }) => {
    const dispatch: Dispatcher['dispatch'] = (options, handler) => {
      const request = toRequest(options)
      const journey = draw(request)
      let isFinished = false
      let rawHeaders: Buffer[] = []
      let cancelTimer = (): void => undefined
      const fail = (error: Error): void => {
        if (isFinished) return
        isFinished = true
        cancelTimer()
        handler.onResponseError?.(controller, error)
      }
      const finish = (): void => {
        if (isFinished) return
        isFinished = true
        cancelTimer()
        handler.onResponseEnd?.(controller, {})
      }
      const controller: Dispatcher.DispatchController = {
        get aborted() {
          return isFinished
        },
        get paused() {
          return false
        },
        get reason() {
          return null
        },
        get rawHeaders() {
          return rawHeaders
        },
        rawTrailers: [],
        abort: fail,
        pause: () => undefined,
        resume: () => undefined,
      }
      const arrive = (reply: ServiceReply): void => {
        if (isFinished) return
        const body = Buffer.from(reply.body)
        const fields = {
          'content-type': 'application/json',
          'content-length': String(body.length),
          ...reply.headers,
        }
        rawHeaders = Object.entries(fields)
          .flat()
          .map((text) => Buffer.from(text))
        handler.onResponseStart?.(controller, reply.status, fields, '')
        const { cutAfter } = journey
        if (cutAfter !== undefined && cutAfter < body.length) {
          if (cutAfter > 0) handler.onResponseData?.(controller, body.subarray(0, cutAfter))
          fail(new errors.SocketError('other side closed'))
          return
        }
        handler.onResponseData?.(controller, body)
        finish()
      }
      const send = (): void => {
        try {
          handler.onRequestStart?.(controller, undefined)
        } catch (error) {
          fail(error instanceof Error ? error : new Error(String(error)))
          return
        }
        onLeave(request, actor)
        const timeoutMs = options.headersTimeout ?? headersMs
        cancelTimer = world.after(actor, timeoutMs, () => fail(new errors.HeadersTimeoutError()))
        const { thereMs, backMs, breaksAfterMs } = journey
        if (breaksAfterMs !== undefined)
          world.after(actor, breaksAfterMs, () => fail(new errors.SocketError('other side closed')))
        if (thereMs === undefined) return
        world.after(service, thereMs, () =>
          serve(request, (reply) => {
            if (backMs !== undefined) world.after(actor, backMs, () => arrive(reply))
          }),
        )
      }
      world.after(actor, 0.1, () => {
        if (isFinished) return
        if (journey.refused === true) fail(new errors.SocketError('connect ECONNREFUSED'))
        else send()
      })
      return true
    }
    return { client: { dispatch, close: () => Promise.resolve() }, wasReset: () => false }
  }
}

function toRequest({ method, path, headers, body }: Dispatcher.DispatchOptions): ServiceRequest {
  const list = Array.isArray(headers) ? headers : Object.entries(headers ?? {}).flat()
  const named: Record<string, string> = {}
  for (let at = 0; at + 1 < list.length; at += 2) named[String(list[at]).toLowerCase()] = String(list[at + 1])
  const text = body instanceof Uint8Array ? Buffer.from(body).toString('latin1') : body
  return { method, path, headers: named, body: typeof text === 'string' ? text : '' }
}
