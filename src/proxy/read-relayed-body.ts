import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'

import { AdapterError, errorRules } from '../errors.ts'
import { readBody } from '../http/body.ts'
import { Pieces } from '../http/pieces.ts'
import type { Slices } from '../http/slices.ts'
import type { HeldBytes } from './byte-budget.ts'

/**
 * Reads the body of a request as it was sent. Undefined where it is larger than `maxBytes`: what was read is put back, so that the request
 * can be sent on as a stream. Errors: `ADP_BODY` where the client went away, `ADP_OVERLOADED`.
 */
export async function readRelayedBody(
  request: IncomingMessage,
  maxBytes: number,
  held: HeldBytes,
): Promise<Buffer | undefined> {
  if (Number(request.headers['content-length']) > maxBytes) return undefined
  // A client that went away while its write was held: its `close` does not come again.
  if (request.destroyed) throw lost()
  const pieces = new Pieces()
  return new Promise((resolve, reject) => {
    const end = (settle: () => void): void => {
      request.off('data', onData).off('end', onEnd).off('error', onLost).off('close', onLost)
      settle()
    }
    const onData = (chunk: Buffer): void => {
      try {
        held.take(chunk.length)
      } catch (cause) {
        end(() => reject(cause instanceof AdapterError ? cause : lost()))
        return
      }
      pieces.add(chunk)
      if (pieces.size <= maxBytes) return
      request.pause()
      end(() => {
        request.unshift(pieces.join())
        resolve(undefined)
      })
    }
    const onEnd = (): void => end(() => resolve(pieces.join()))
    const onLost = (): void => end(() => reject(lost()))
    request.on('data', onData).once('end', onEnd).once('error', onLost).once('close', onLost)
  })
}

/** The body of a request without its compression; undefined: it cannot be read, or is larger than `maxBytes`. */
export async function decompressed(
  { headers }: IncomingMessage,
  body: Buffer,
  maxBytes: number,
  held: HeldBytes,
  slices: Slices,
): Promise<Buffer | undefined> {
  const contentEncoding = headers['content-encoding']
  if (contentEncoding === undefined) return body
  try {
    const onBytes = (count: number): void => held.take(count)
    return await readBody(Readable.from([body]), { maxBytes, contentEncoding, onBytes, slices })
  } catch (cause) {
    if (cause instanceof AdapterError && errorRules[cause.code].class === 'request') return undefined
    throw cause
  }
}

const lost = (): AdapterError =>
  new AdapterError('ADP_BODY', 'The client went away before the body was whole. Nothing was sent.')
