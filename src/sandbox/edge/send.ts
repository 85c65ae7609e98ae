import type { ServerResponse } from 'node:http'
import { gzipSync } from 'node:zlib'
import type { Disturbance } from './disturbance.ts'
import type { Reply } from './reply.ts'

/** Writes an answer to the wire. */
export function sendReply(response: ServerResponse, reply: Reply): void {
  // Node's own writeHead: Express would parse and rewrite the content type of every answer.
  const length = reply.status === 204 ? {} : { 'Content-Length': Buffer.byteLength(reply.body) }
  response.writeHead(reply.status, { ...reply.headers, ...length })
  response.end(reply.body)
}

/** Writes an answer, damaged as the faults want it. */
export function sendDisturbed(response: ServerResponse, reply: Reply, disturbance: Disturbance): void {
  const damaged = disturbance.brokenGzip ? breakGzip(reply) : reply
  const { truncateAt, bytesPerSecond } = disturbance
  if (truncateAt === undefined && bytesPerSecond === undefined) {
    sendReply(response, damaged)
    return
  }
  const body = Buffer.from(damaged.body)
  response.writeHead(damaged.status, { ...damaged.headers, 'Content-Length': body.length })
  const sent = body.subarray(0, truncateAt)
  const end = (): void => {
    if (sent.length < body.length) response.destroy()
    else response.end()
  }
  if (bytesPerSecond === undefined) {
    response.write(sent, end)
    return
  }
  sendSlowly(response, sent, bytesPerSecond, end)
}

/** Compresses the body and damages the bytes after the gzip header, so that decoding fails half-way. */
function breakGzip(reply: Reply): Reply {
  const body = gzipSync(reply.body)
  // RFC 1952 2.3: ten bytes of header stay, so that the stream looks like gzip.
  for (let at = 10; at < body.length; at += 7) body[at] = (body[at] ?? 0) ^ 0xff
  return { ...reply, headers: { ...reply.headers, 'Content-Encoding': 'gzip' }, body }
}

const tickMs = 50

function sendSlowly(response: ServerResponse, body: Buffer, bytesPerSecond: number, end: () => void): void {
  const step = Math.max(1, Math.round((bytesPerSecond * tickMs) / 1000))
  let at = 0
  const timer = setInterval(() => {
    response.write(body.subarray(at, at + step))
    at += step
    if (at < body.length) return
    clearInterval(timer)
    end()
  }, tickMs)
  response.once('close', () => clearInterval(timer))
}

/** Leaves the client without an answer: the connection is reset, or stays open until the client gives up. */
export function loseReply(response: ServerResponse, how: 'reset' | 'stall'): void {
  if (how === 'reset') response.socket?.resetAndDestroy()
}
