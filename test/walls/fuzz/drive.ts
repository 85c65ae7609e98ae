import { connect, type Socket } from 'node:net'
import { setImmediate } from 'node:timers/promises'

import { createRandom, type Random } from '../../../src/sandbox/random.ts'
import { readMessage } from '../../e2e/support/raw-message.ts'
import { drawRequest, drawWithTail, type Seeds } from './requests.ts'

/** A finding of the fuzzer. `request` is the number that draws the same bytes again. */
export interface Finding {
  readonly request: number
  readonly what: 'status 500' | 'hang' | 'not HTTP' | 'reply replaced'
  readonly detail: string
}

export interface FuzzOptions {
  readonly port: number
  readonly seeds: Seeds
  readonly seed: number
  /** The numbers of the requests to send, from the first (inclusive) to the last (exclusive). */
  readonly first: number
  readonly last: number
  readonly concurrency: number
}

export interface FuzzResult {
  readonly statuses: ReadonlyMap<number, number>
  readonly findings: readonly Finding[]
}

/** Time in milliseconds within which a reply must be complete or the connection closed. */
const HANG_MS = 5_000
const STATUS = /HTTP\/1\.1 (\d{3}) /g

/** The share of requests that are complete and followed by bytes that are not a request. */
const TAIL_SHARE = 0.1
/** Matches the error that the listener sends about bytes after a request. This error must not replace the reply to the request. */
const LISTENERS_ANSWER = /^HTTP\/1\.1 (?:400|405|408) [^\r]*\r\nContent-Type: application\/json\r\n/

/** Sends drawn requests, each over its own connection and in pieces, and checks every reply for results that must never occur. */
export async function runFuzz(options: FuzzOptions): Promise<FuzzResult> {
  const statuses = new Map<number, number>()
  const findings: Finding[] = []
  let next = options.first
  const work = async (): Promise<void> => {
    while (next < options.last) {
      const request = next
      next += 1
      const random = createRandom(options.seed, `request ${request}`)
      const hasTail = random.chance(TAIL_SHARE)
      const draw = hasTail ? drawWithTail : drawRequest
      const { reply, ended } = await exchange(options.port, draw(options.seeds, random), random)
      const first = /^HTTP\/1\.1 (\d{3}) /.exec(reply)?.[1]
      const status = Number(first ?? 0)
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
      if (!ended) findings.push({ request, what: 'hang', detail: reply.slice(0, 80) })
      if (first === undefined && reply !== '')
        findings.push({ request, what: 'not HTTP', detail: reply.slice(0, 80) })
      if (hasTail && LISTENERS_ANSWER.test(reply))
        findings.push({ request, what: 'reply replaced', detail: reply.slice(0, 400) })
      if ([...reply.matchAll(STATUS)].some(([, one]) => one === '500'))
        findings.push({ request, what: 'status 500', detail: reply.slice(0, 400) })
    }
  }
  await Promise.all(Array.from({ length: options.concurrency }, work))
  return { statuses, findings }
}

interface Exchanged {
  readonly reply: string
  /** False if the server neither answered completely nor closed the connection in time. */
  readonly ended: boolean
}

/** The time in milliseconds after which a client gives up an incomplete request. */
const GIVE_UP_MS = 50

/**
 * Sends bytes in pieces and waits for a complete reply. One connection in twenty closes without waiting. After an incomplete request the
 * server may rightly wait for more, so the client closes its sending direction after `GIVE_UP_MS`.
 */
async function exchange(port: number, bytes: Buffer, random: Random): Promise<Exchanged> {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true, allowHalfOpen: true })
  const received: Buffer[] = []
  // A server skips empty lines before a request (RFC 9112 2.2).
  const isHead = /^[\r\n]*HEAD /.test(bytes.toString('latin1', 0, 64))
  const end = untilEnd(socket, (chunk) => {
    received.push(chunk)
    const all = Buffer.concat(received)
    return isHead ? all.includes('\r\n\r\n') : isWholeReply(all)
  })
  const leaves = random.chance(0.05)
  const pieces = random.chance(0.5) ? 1 : 1 + random.below(5)
  const size = Math.max(1, Math.ceil(bytes.length / pieces))
  for (let at = 0; at < bytes.length && socket.writable; at += size) {
    socket.write(bytes.subarray(at, at + size))
    if (pieces > 1) await setImmediate()
  }
  const giveUp = setTimeout(() => socket.end(), GIVE_UP_MS)
  if (leaves) socket.destroy()
  if (isWholeRequest(bytes)) clearTimeout(giveUp)
  const ended = await end
  clearTimeout(giveUp)
  socket.destroy()
  return { reply: Buffer.concat(received).toString('latin1'), ended }
}

/** Returns true if a simple reading of the head shows that the server needs no more bytes. */
function isWholeRequest(bytes: Buffer): boolean {
  const headEnd = bytes.indexOf('\r\n\r\n')
  if (headEnd < 0) return false
  const head = bytes.toString('latin1', 0, headEnd)
  if (/\n(?:expect|upgrade|transfer-encoding) *:/i.test(head)) return false
  const lengths = [...head.matchAll(/\ncontent-length *:([^\r\n]*)/gi)].map(([, length]) => Number(length))
  const [length = 0] = lengths
  return lengths.length <= 1 && bytes.length - headEnd - 4 >= length
}

function isWholeReply(bytes: Buffer): boolean {
  return readMessage(bytes) !== undefined && !bytes.subarray(0, 12).toString().endsWith(' 100')
}

/**
 * Resolves with true at the end of the connection, or once `onData` returns true because everything has arrived. Resolves with false after
 * `HANG_MS`.
 */
function untilEnd(socket: Socket, onData: (chunk: Buffer) => boolean): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(false), HANG_MS)
    const end = (): void => {
      clearTimeout(timer)
      resolve(true)
    }
    socket.on('data', (chunk: Buffer) => {
      if (onData(chunk)) end()
    })
    // A reset also ends the exchange. The bytes before the reset are checked.
    socket
      .once('end', end)
      .once('close', end)
      .on('error', () => undefined)
  })
}
