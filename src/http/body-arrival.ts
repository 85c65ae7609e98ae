import type { IncomingMessage } from 'node:http'

import type { Clock } from '../clock.ts'
import { AdapterError } from '../errors.ts'

/** How long to wait for a body. */
export interface ArrivalWait {
  readonly clock: Clock
  readonly waitMs: number
}

/**
 * Resolves once the whole body has arrived, or as much of it as the request buffers without a reader (64 KiB); also when the
 * client disconnects. The body stays in the request for a later reader. `onBytes` is called with the number of bytes since the
 * last call and may throw to refuse the rest. With `wait` it resolves after that time at the latest.
 */
export function bodyArrival(
  request: IncomingMessage,
  onBytes: (count: number) => void,
  wait?: ArrivalWait,
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
    const cancel = wait?.clock.after(wait.waitMs, stop)
    request.on('readable', check).once('close', stop).once('error', stop)
    check()
  })
}

/** True while a body is to come. RFC 9112 6.3: a request has one when one of the two fields says so. */
export function hasBody({ headers, complete }: IncomingMessage): boolean {
  return (
    !complete && (headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0)
  )
}
