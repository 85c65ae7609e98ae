import type { Socket } from 'node:net'

/** The beginning of the status line of an interim response, without the last two digits of the status. */
const INTERIM = Buffer.from('HTTP/1.1 1')
const STATUS_END = INTERIM.length + 2
const [ZERO, TWO, CR, LF] = [0x30, 0x32, 0x0d, 0x0a]

/**
 * Makes a connection skip an unrequested `100 Continue` (RFC 9110 15.2.1). undici treats this response as an error, and the reply to a
 * write that was applied would be lost. This function changes the status to 102, which undici skips like every other interim response. It
 * examines only status lines after a `socket.write`, because the connection carries one request at a time.
 */
export function skipContinue(socket: Socket): void {
  const read = socket.read.bind(socket) as (size?: number) => unknown
  const write = socket.write.bind(socket) as (...args: unknown[]) => boolean
  let isAtHead = false
  /** The number of bytes of the status line that have arrived. */
  let position = 0
  let isZero = false
  let isEmptyLine = false
  const rewrite = (chunk: Buffer): void => {
    for (let at = 0; at < chunk.length && isAtHead; at += 1) {
      const byte = chunk[at] ?? 0
      if (position < INTERIM.length) isAtHead = byte === INTERIM[position]
      else if (position === INTERIM.length) isZero = byte === ZERO
      else if (position < STATUS_END) {
        if (isZero && byte === ZERO) chunk[at] = TWO
      } else if (byte === LF) {
        // An empty line ends the head. Another interim response may follow.
        if (isEmptyLine) position = -1
        isEmptyLine = !isEmptyLine
      } else if (byte !== CR) isEmptyLine = false
      if (position < STATUS_END) position += 1
    }
  }
  socket.read = (size) => {
    const chunk = read(size)
    if (isAtHead && Buffer.isBuffer(chunk)) rewrite(chunk)
    return chunk
  }
  socket.write = (...args: unknown[]) => {
    isAtHead = true
    position = 0
    isEmptyLine = false
    return write(...args)
  }
}
