import type { IncomingHttpHeaders } from 'node:http'

import type { Dispatcher } from 'undici'

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

/** An interceptor for the dispatcher of reads: reports every upstream call that was sent to `onCall`. */
export function observeReads(onCall: OnCall, nowMs: () => number): Dispatcher.DispatcherComposeInterceptor {
  return (dispatch) => (options, handler) =>
    dispatch(
      options,
      new ObservedHandler(handler, nowMs, (status, durationMs) =>
        onCall({ kind: 'read', status, durationMs }),
      ),
    )
}

/** Passes everything on; notifies once, of the status line or of its absence. */
class ObservedHandler implements Dispatcher.DispatchHandler {
  private readonly handler: Dispatcher.DispatchHandler
  private readonly nowMs: () => number
  private readonly notify: (status: number | undefined, durationMs: number) => void
  private startedMs: number | undefined

  constructor(
    handler: Dispatcher.DispatchHandler,
    nowMs: () => number,
    notify: (status: number | undefined, durationMs: number) => void,
  ) {
    this.handler = handler
    this.nowMs = nowMs
    this.notify = notify
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
    this.notify(status, durationMs)
  }
}
