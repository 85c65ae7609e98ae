import type { IncomingHttpHeaders } from 'node:http'

import type { Dispatcher } from 'undici'

/** A call that left for V3, as far as its status line. */
export interface V3Call {
  readonly kind: 'write' | 'batch' | 'read' | 'passThrough'
  /** Undefined: no answer came. */
  readonly status: number | undefined
  /** From the request on the connection to the status line, or to the end without one. */
  readonly durationMs: number
}

/** Hears of every call that left. */
export type OnCall = (call: V3Call) => void

/** Composes into the dispatcher of reads what tells `onCall` of every call; one that never left is none. */
export function observeReads(onCall: OnCall, nowMs: () => number): Dispatcher.DispatcherComposeInterceptor {
  return (dispatch) => (options, handler) =>
    dispatch(
      options,
      new ObservedHandler(handler, nowMs, (status, durationMs) =>
        onCall({ kind: 'read', status, durationMs }),
      ),
    )
}

/** Hands everything on; tells once of the status line or of its absence. */
class ObservedHandler implements Dispatcher.DispatchHandler {
  private readonly handler: Dispatcher.DispatchHandler
  private readonly nowMs: () => number
  private readonly tell: (status: number | undefined, durationMs: number) => void
  private startedMs: number | undefined

  constructor(
    handler: Dispatcher.DispatchHandler,
    nowMs: () => number,
    tell: (status: number | undefined, durationMs: number) => void,
  ) {
    this.handler = handler
    this.nowMs = nowMs
    this.tell = tell
  }

  onRequestStart(controller: Dispatcher.DispatchController, context: unknown): void {
    // A handler may throw to keep a call from leaving: then there was none.
    this.handler.onRequestStart?.(controller, context)
    this.startedMs = this.nowMs()
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    headers: IncomingHttpHeaders,
    statusMessage?: string,
  ): void {
    if (status >= 200) this.finish(status)
    this.handler.onResponseStart?.(controller, status, headers, statusMessage)
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.handler.onResponseData?.(controller, chunk)
  }

  onResponseEnd(controller: Dispatcher.DispatchController, trailers: IncomingHttpHeaders): void {
    this.handler.onResponseEnd?.(controller, trailers)
  }

  onResponseError(controller: Dispatcher.DispatchController, error: Error): void {
    this.finish(undefined)
    this.handler.onResponseError?.(controller, error)
  }

  private finish(status: number | undefined): void {
    if (this.startedMs === undefined) return
    const durationMs = this.nowMs() - this.startedMs
    this.startedMs = undefined
    this.tell(status, durationMs)
  }
}
