import { expect, test } from 'vitest'

import { readBody } from '../../src/http/body.ts'
import { readRecordedRequest } from '../../src/http/recorded-request.ts'

const read = (text: string): Promise<unknown> =>
  readRecordedRequest(Buffer.from(text), async (request) => ({
    method: request.method,
    url: request.url,
    type: request.headers['content-type'],
    body: (await readBody(request, { maxBytes: 1_000, contentEncoding: undefined })).toString(),
  }))

const HEAD = 'POST /x HTTP/1.1\r\nContent-Type: a/b\r\n'

test.each([
  ['with a Content-Length', `${HEAD}Content-Length: 3\r\n\r\nabc`],
  ['in chunks', `${HEAD}Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n`],
  ['with bytes after it', `${HEAD}Content-Length: 3\r\n\r\nabcdef`],
  ['that expects 100-continue', `${HEAD}Expect: 100-continue\r\nContent-Length: 3\r\n\r\nabc`],
])('readRecordedRequest reads a request %s', async (_, text) => {
  expect(await read(text)).toEqual({ method: 'POST', url: '/x', type: 'a/b', body: 'abc' })
})

test.each([
  ['', []],
  ['\r\n\r\n', []],
  ['GET / HTTP/1.1\r\n\r\n', [true]],
  ['hello', [false]],
])(
  'readRecordedRequest reports whether the bytes after the request begin another request: %j',
  async (more, expected) => {
    const seen: boolean[] = []
    const bytes = Buffer.from(`${HEAD}Content-Length: 3\r\n\r\nabc${more}`)
    await readRecordedRequest(
      bytes,
      () => Promise.resolve(),
      (isRequest) => seen.push(isRequest),
    )
    expect(seen).toEqual(expected)
  },
)

test('readRecordedRequest returns a request whose body cannot be read if the recording ends within the body', async () => {
  await expect(read(`${HEAD}Content-Length: 9\r\n\r\nabc`)).rejects.toMatchObject({ code: 'ADP_BODY' })
})

test.each([
  ['text that is not HTTP', 'hello\r\n\r\n', 'valid'],
  ['an empty request', '', 'valid'],
  ['half a head', HEAD, 'valid'],
  ['two lengths', `${HEAD}Content-Length: 1\r\nContent-Length: 2\r\n\r\nab`, 'valid'],
  ['CONNECT', 'CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n', 'valid'],
  ['a long head', `${HEAD}A: ${'x'.repeat(200_000)}\r\n\r\n`, 'too long'],
])('readRecordedRequest refuses %s as the listener does', async (_, text, word) => {
  await expect(read(text)).rejects.toMatchObject({ code: 'ADP_HEADER', message: expect.stringContaining(word) as unknown })
}) // prettier-ignore
