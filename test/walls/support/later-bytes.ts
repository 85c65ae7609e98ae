/** Bytes that senders put behind a request (batch-wire F33), with the status of the answer to these bytes. */
export const tails: Readonly<Record<string, readonly [bytes: string, status: number]>> = {
  NUL: ['\0', 400],
  'a blank': [' ', 400],
  'Ctrl-Z': ['\u001a', 400],
  'a second end mark': ['--batch--\r\n', 400],
  'a text': ['the end', 400],
  'a request line alone that is broken': ['GET\r\n\r\n', 400],
  'a request with a broken field': ['GET / HTTP/1.1\r\nHost: x\r\na b\0: c\r\n\r\n', 400],
  'a request with two lengths': ['POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n', 400],
  'a request with a head of 200 KB': [`GET / HTTP/1.1\r\nHost: x\r\nX: ${'x'.repeat(200_000)}\r\n\r\n`, 431],
  'the preface of HTTP/2': ['PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 400],
  'a request for a tunnel': ['CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n', 405],
}
