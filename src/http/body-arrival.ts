import type { IncomingMessage } from 'node:http'

import type { Clock } from '../clock.ts'
import { AdapterError } from '../errors.ts'

/**
 * Resolves once the whole body has arrived, or as much of it as the request buffers without a reader (64 KiB); also when the
 * client disconnects. The body stays in the request for a later reader. `onBytes` is called with the number of bytes since the
 * last call and may throw to refuse the rest. With `waitMs` it resolves after that time at the latest.
 */
export function bodyArrival(
  request: IncomingMessage,
  onBytes: (count: number) => void,
  { clock, waitMs }: { readonly clock: Clock; readonly waitMs: number | undefined },
): Promise<void> {
  if (!hasBody(request)) return Promise.resolve()
  return new Promise((resolve, reject) => {
    let counted = 0
    const end = (settle: () => void): void => {
      cancel?.()
      request.off('readable', check).off('close', stop).off('error', stop)
      settle()
    }
    const stop = (): void => end(resolve)
    const check = (): void => {
      const { readableLength } = request
      try {
        onBytes(readableLength - counted)
      } catch (cause) {
        if (!(cause instanceof AdapterError)) throw cause
        end(() => reject(cause))
        return
      }
      counted = readableLength
      if (request.complete || readableLength >= request.readableHighWaterMark) end(resolve)
    }
    const cancel = waitMs === undefined ? undefined : clock.after(waitMs, stop)
    request.on('readable', check).once('close', stop).once('error', stop)
    check()
  })
}

/** True while a body is to come. */
export function hasBody(request: IncomingMessage): boolean {
  return !request.complete && isFramed(request)
}

/** RFC 9112 6.3: a request has a body when one of the two fields says so. */
export function isFramed({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}
