import { gzipSync } from 'node:zlib'

import type { Random } from '../../../src/sandbox/random.ts'

/** The content of a reply, before `oddReply` writes it as bytes. */
export interface Said {
  readonly status: number
  readonly contentType: string
  readonly body: string
}

/** The bytes of a reply, and what happens to its connection afterwards. */
export interface OddReply {
  readonly pieces: readonly Buffer[]
  /** `endless`: the last piece is sent repeatedly until the other side has closed. */
  readonly end: 'keep' | 'close' | 'reset' | 'endless'
}

type Fields = (readonly [name: string, value: string])[]

/** The header of every reply of the service, by which a client recognises a reply that the adapter only forwarded. */
export const MARKER = 'x-odd-service'

const interims = [
  'HTTP/1.1 100 Continue\r\n\r\n', 'HTTP/1.1 100\r\n\r\n', 'HTTP/1.1 102 Processing\r\nX: y\r\n\r\n', 'HTTP/1.1 103 Early Hints\r\nLink: <a>\r\nLink: <b>\r\n\r\n',
  'HTTP/1.1 199 ?\r\nContent-Length: 7\r\n\r\n', 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n', 'HTTP/1.1 100 Continue\r\n\r\n'.repeat(200),
] as const // prettier-ignore

const waits = ['0', '1', '-1', '1.5', '', 'soon', '99999999', '1'.repeat(400), 'Wed, 21 Oct 2099 07:28:00 GMT', 'Wed, 21 Oct 1999 07:28:00 GMT', '\xe9'] as const // prettier-ignore

/** Returns header fields of which some are repeated, missing, huge or of an unexpected type. */
function oddFields(said: Said, random: Random): Fields {
  const fields: Fields = []
  const add = (name: string, ...values: string[]): void =>
    void fields.push(...values.map((value) => [name, value] as const))
  if (random.chance(0.9)) add(random.pick(['Content-Type', 'content-type', 'CONTENT-TYPE']), said.contentType)
  if (random.chance(0.06))
    add(
      'Content-Type',
      random.pick([said.contentType, 'text/html', '', 'multipart/mixed', 'application/json;q="']),
    )
  if (said.status >= 400 ? random.chance(0.5) : random.chance(0.05)) {
    const wait = random.pick(waits)
    add('Retry-After', wait)
    if (random.chance(0.4)) add('retry-after', random.chance(0.5) ? wait : random.pick(waits))
  }
  const more: readonly [() => void, ...(() => void)[]] = [
    () => add('Set-Cookie', 'a=b', 'a=c', 'd=e'),
    () => add('X-Long', 'x'.repeat(random.pick([4_000, 14_000, 17_000, 70_000]))),
    () => add('X-Many', ...Array.from({ length: random.pick([50, 400]) }, (_, n) => String(n))),
    () => add('constructor', 'x', 'y'),
    () => add('__proto__', 'x'),
    () => add('X-Bytes', '\xe9\xff\x80'),
    () => add('Keep-Alive', random.pick(['timeout=75', 'timeout=0', 'timeout=-1', 'timeout=1e9', 'max=0', ''])),
    () => add('Connection', random.pick(['keep-alive', 'close', 'upgrade', 'Content-Type, Content-Length', 'x'.repeat(2_000)])),
    () => add('Content-Encoding', random.pick(['identity', 'gzip', 'br', 'gzip, gzip', 'x'])),
    () => add('Trailer', 'X-End'),
    () => add('Location', random.pick(['/', 'http://127.0.0.1:1/', '//x', '\\'])),
    () => add('WWW-Authenticate', 'Bearer', 'Basic'),
    () => add('OData-Version', '9.9', '4.0'),
    () => add('Date', 'never'),
    () => add('Content-Range', 'bytes 0-1/*'),
  ] // prettier-ignore
  while (random.chance(0.4)) random.pick(more)()
  return fields.map((field) => [field, random.next()] as const).sort(([, one], [, other]) => one - other).map(([field]) => field) // prettier-ignore
}

const chunk = (bytes: Buffer, extension = ''): Buffer =>
  Buffer.concat([Buffer.from(`${bytes.length.toString(16)}${extension}\r\n`), bytes, Buffer.from('\r\n')])

interface Framed {
  readonly fields: Fields
  readonly body: Buffer
  readonly end: OddReply['end']
}

type Frame = (body: Buffer, random: Random) => Framed

const length = (bytes: Buffer, more = 0): Fields => [['Content-Length', String(bytes.length + more)]]
const chunks: Fields = [['Transfer-Encoding', 'chunked']]
const LAST = Buffer.from('0\r\n\r\n')

const right: Frame = (body) => ({ fields: length(body), body, end: 'keep' })
const frames: readonly [Frame, ...Frame[]] = [
  (body) => ({ fields: chunks, body: Buffer.concat([body.length === 0 ? body : chunk(body), LAST]), end: 'keep' }),
  (body) => ({ fields: chunks, body: Buffer.concat([...[...body.subarray(0, 600)].map((byte) => chunk(Buffer.from([byte]), ';x=y')), body.length > 600 ? chunk(body.subarray(600)) : Buffer.alloc(0), LAST]), end: 'keep' }),
  (body) => ({ fields: chunks, body: Buffer.concat([body.length === 0 ? body : chunk(body), Buffer.from('0\r\nX-End: 1\r\nRetry-After: 9\r\n\r\n')]), end: 'keep' }),
  (body) => ({ fields: chunks, body: Buffer.concat([body.length === 0 ? body : chunk(body), Buffer.from('zz\r\n')]), end: 'keep' }),
  (body) => ({ fields: chunks, body: Buffer.concat([body.length === 0 ? body : chunk(body)]), end: 'close' }),
  (body) => ({ fields: chunks, body: Buffer.from(`ffffffffffffffff\r\n${body.toString('latin1')}`, 'latin1'), end: 'close' }),
  (body) => ({ fields: [], body, end: 'close' }),
  (body) => ({ fields: [], body, end: 'reset' }),
  (body) => ({ fields: length(body, 5), body, end: 'close' }),
  (body) => ({ fields: length(body, 5), body, end: 'keep' }),
  (body) => ({ fields: length(body, 5), body, end: 'reset' }),
  (body) => ({ fields: length(body, -Math.min(5, body.length)), body, end: 'keep' }),
  (body) => ({ fields: [...length(body), ...length(body)], body, end: 'keep' }),
  (body) => ({ fields: [...length(body), ...length(body, 1)], body, end: 'close' }),
  (body) => ({ fields: [...length(body), ...chunks], body: Buffer.concat([chunk(Buffer.concat([body, Buffer.from(' ')])), LAST]), end: 'close' }),
  (body) => ({ fields: [['Transfer-Encoding', 'gzip, chunked']], body: Buffer.concat([chunk(gzipSync(body)), LAST]), end: 'close' }),
  (body) => ({ fields: [['Content-Length', `+${body.length}`]], body, end: 'close' }),
  (body) => ({ fields: [['Content-Length', '99999999999999999999']], body, end: 'close' }),
  (body, random) => ({ fields: [['Content-Encoding', random.pick(['gzip', 'x-gzip'])], ...length(gzipSync(body))], body: gzipSync(body), end: 'keep' }),
  (body) => ({ fields: length(body), body: Buffer.concat([body, Buffer.from('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}')]), end: 'keep' }),
  () => ({ fields: [['Content-Length', '1000000000']], body: Buffer.alloc(16_384, 0x20), end: 'endless' }),
  () => ({ fields: chunks, body: chunk(Buffer.alloc(16_384, 0x20)), end: 'endless' }),
] // prettier-ignore

const starts = ['HTTP/1.1 {} ', 'HTTP/1.1 {}', 'HTTP/1.0 {} OK', 'HTTP/1.1 {} \xe9\xff', `HTTP/1.1 {} ${'r'.repeat(9_000)}`, 'HTTP/2.0 {} OK', 'HTTP/1.1  {} OK', 'http/1.1 {} ok', 'HTTP/1.1 {}0 OK', '\r\nHTTP/1.1 {} OK', 'garbage'] as const // prettier-ignore

/** Writes the reply of a service as bytes, in an odd way about half of the time. */
export function oddReply(said: Said, random: Random): OddReply {
  const isPlain = random.chance(0.45)
  const start = isPlain || random.chance(0.92) ? 'HTTP/1.1 {} Told' : random.pick(starts)
  const frame = isPlain || random.chance(0.6) ? right : random.pick(frames)
  const isBodiless = said.status === 204 || said.status === 304
  const framed = frame(Buffer.from(isBodiless ? '' : said.body), random)
  const fields: Fields = isPlain ? [['Content-Type', said.contentType]] : oddFields(said, random)
  fields.push([MARKER, '1'], ...(isBodiless && framed.end !== 'endless' ? [] : framed.fields))
  const lineEnd = !isPlain && random.chance(0.02) ? '\n' : '\r\n'
  const lines = [
    start.replace('{}', String(said.status)),
    ...fields.map(([name, value]) => `${name}: ${value}`),
  ]
  if (!isPlain && random.chance(0.02))
    lines.push(random.pick([' folded', 'no colon', ': nameless', 'a b: c', 'x\0: y', 'x:\x01']))
  const head = Buffer.from(`${lines.join(lineEnd)}${lineEnd}${lineEnd}`, 'latin1')
  const before = !isPlain && random.chance(0.12) ? random.pick(interims) : ''
  const end =
    !isPlain && framed.end === 'keep' && random.chance(0.05)
      ? random.pick(['close', 'reset'] as const)
      : framed.end
  if (end === 'endless') return { pieces: [Buffer.concat([Buffer.from(before), head]), framed.body], end }
  const bytes = Buffer.concat([Buffer.from(before), head, isBodiless ? Buffer.alloc(0) : framed.body])
  // Sends only the start of the reply or nothing, and then stays silent, closes or resets the connection.
  if (!isPlain && random.chance(0.04))
    return {
      pieces: [bytes.subarray(0, random.below(bytes.length))],
      end: random.pick(['keep', 'close', 'reset']),
    }
  return { pieces: isPlain ? [bytes] : cut(bytes, random), end }
}

function cut(bytes: Buffer, random: Random): Buffer[] {
  if (random.chance(0.6)) return [bytes]
  const cuts = Array.from({ length: 1 + random.below(4) }, () => random.below(bytes.length)).sort(
    (one, other) => one - other,
  )
  return [0, ...cuts].map((from, index) => bytes.subarray(from, cuts[index] ?? bytes.length))
}
