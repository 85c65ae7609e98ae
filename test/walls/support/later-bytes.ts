/** Bytes that some clients send after a request (batch-wire F33), with the status of the reply to these bytes. */
export const tails: Readonly<Record<string, readonly [bytes: string, status: number]>> = {
  'a NUL byte': ['\0', 400],
  'a space': [' ', 400],
  'a Ctrl-Z byte': ['\u001a', 400],
  'a second closing delimiter': ['--batch--\r\n', 400],
  'plain text': ['the end', 400],
  'a broken request line': ['GET\r\n\r\n', 400],
  'a request with a malformed header field': ['GET / HTTP/1.1\r\nHost: x\r\na b\0: c\r\n\r\n', 400],
  'a request with two Content-Length fields': [
    'POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n',
    400,
  ],
  'a request with a head of 200 KB': [`GET / HTTP/1.1\r\nHost: x\r\nX: ${'x'.repeat(200_000)}\r\n\r\n`, 431],
  'the preface of HTTP/2': ['PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 400],
  'a CONNECT request': ['CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n', 405],
}
