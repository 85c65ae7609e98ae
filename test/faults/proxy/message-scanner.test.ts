import { describe, expect, test } from 'vitest'

import { MessageScanner } from './message-scanner.ts'

const next = 'POST /next HTTP/1.1\r\n'
const rows: [name: string, kind: 'request' | 'reply', message: string][] = [
  ['a request without a body', 'request', 'GET / HTTP/1.1\r\nHost: a\r\n\r\n'],
  ['a request with a length', 'request', 'POST / HTTP/1.1\r\ncontent-length: 5\r\n\r\nab\r\nc'],
  ['an empty body', 'reply', 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n'],
  ['a chunked reply', 'reply', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\na\nb\r\n1a;x=y\r\n0\r\n\r\n5\r\nlooks like the end\r\n0\r\n\r\n'],
  ['a chunked reply with trailers', 'reply', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX: 1\r\n\r\n'],
  ['a reply that has none', 'reply', 'HTTP/1.1 204 No Content\r\n\r\n'],
  ['an interim answer before the real one', 'reply', 'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx'],
] // prettier-ignore

/** Feeds pieces one after another; how many bytes were used in all, and whether the message became whole. */
function feed(scanner: MessageScanner, pieces: readonly Buffer[]): { used: number; done: boolean } {
  let used = 0
  for (const piece of pieces) {
    const scan = scanner.push(piece)
    used += scan.used
    if (scan.done) return { used, done: true }
  }
  return { used, done: false }
}

describe('the end of a message', () => {
  test.each(rows)('%s, in two pieces cut anywhere', (_name, kind, message) => {
    const bytes = Buffer.from(message + next)
    for (let cut = 0; cut <= bytes.length; cut += 1) {
      const scan = feed(new MessageScanner(kind), [bytes.subarray(0, cut), bytes.subarray(cut)])
      expect(scan).toEqual({ used: message.length, done: true })
    }
  })

  test.each(rows)('%s, byte by byte', (_name, kind, message) => {
    const pieces = [...Buffer.from(message)].map((byte) => Buffer.from([byte]))
    expect(feed(new MessageScanner(kind), pieces)).toEqual({ used: message.length, done: true })
    expect(feed(new MessageScanner(kind), pieces.slice(0, -1)).done).toBe(false)
  })

  test('the reply to a HEAD has no body', () => {
    const head = 'HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n'
    expect(feed(new MessageScanner('reply', true), [Buffer.from(head)])).toEqual({
      used: head.length,
      done: true,
    })
  })

  test('a reply without a length goes on until the connection closes', () => {
    const scanner = new MessageScanner('reply')
    expect(scanner.push(Buffer.from('HTTP/1.1 200 OK\r\n\r\nall of it')).done).toBe(false)
    expect(scanner.head).toBe('HTTP/1.1 200 OK\r\n\r\n')
  })
})
