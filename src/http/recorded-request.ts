import { createServer, type IncomingMessage } from 'node:http'
import { Duplex } from 'node:stream'

import { AdapterError } from '../errors.ts'
import { unreadableAnswer } from './reply-order.ts'
import { MAX_HEADER_BYTES } from './server.ts'

/**
 * Parses the bytes of a recorded request without a connection, using the parser of Node.js and the header limit of the listener. Calls
 * `read` with the request, whose body is not read yet, and returns the result of `read`. If more bytes follow the request, calls `onMore`
 * first, with true if they begin another request. Throws `ADP_HEADER` for a request that the listener would refuse before the adapter sees
 * it.
 */
export function readRecordedRequest<Result>(
  bytes: Buffer,
  read: (request: IncomingMessage) => Promise<Result>,
  onMore: (isRequest: boolean) => void = () => undefined,
): Promise<Result> {
  return new Promise((resolve, reject) => {
    const refuse = (cause?: NodeJS.ErrnoException): void => {
      reject(new AdapterError('ADP_HEADER', unreadableAnswer(cause)[1], cause === undefined ? {} : { cause }))
    }
    // A missing `Host` header is allowed here, because `checkHost` refuses the request later.
    const options = { maxHeaderSize: MAX_HEADER_BYTES, requireHostHeader: false }
    let request: IncomingMessage | undefined
    const server = createServer(options, (incoming) => {
      if (request !== undefined) {
        onMore(true)
        return
      }
      request = incoming
      read(incoming)
        .then(resolve, reject)
        .finally(() => connection.destroy())
    })
    server.on('clientError', (error) => {
      if (request === undefined) refuse(error)
      else if (request.complete) onMore(false)
      else connection.destroy()
    })
    const connection = new Duplex({ read: () => undefined, write: (_chunk, _encoding, done) => done() })
    // For some requests, such as CONNECT, Node.js emits neither `request` nor `clientError` and only closes the connection.
    connection.once('close', () => {
      if (request === undefined) refuse()
    })
    server.emit('connection', connection)
    // The end of the input is signalled only for an incomplete request. For a complete request it would discard the body.
    connection.once('data', () => {
      if (request?.complete !== true) connection.push(null)
    })
    if (bytes.length === 0) connection.destroy()
    else connection.push(bytes)
  })
}
