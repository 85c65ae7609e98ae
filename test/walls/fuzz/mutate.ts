import type { Random } from '../../../src/sandbox/random.ts'

/** Texts that are known to trouble parsers of HTTP, MIME, JSON, URLs and OData. */
const awkward = [
  '\r\n', '\n', '\r', '\0', '\t', ' ', '"', "'", '\\', '/', '//', '..', '/../', '..;/', '#', '?', '&', '=', ';', ',', ':', '%', '%00',
  '%2e%2e', '%252e', '%2f', '%5c', '%zz', '%u0000', '+', '*', '(', ')', '((((((((', '{', '}', '[', ']', '[[[[[[[[', '--', '--\r\n', 'null',
  'true', '-1', '1e999', '9007199254740993', '2147483648', '0x10', 'NaN', '__proto__', 'constructor', 'é', '\ud83d\ude00', '\ufeff',
  '\ufffd', '\u202e', '$filter=', '$batch', '$skiptoken=', 'eq', 'HTTP/1.1', 'HTTP/0.9', 'Host: x\r\n', 'Content-Length: 0\r\n',
  'Content-Length: 99999999999\r\n', 'Transfer-Encoding: chunked\r\n', 'Transfer-Encoding: xchunked\r\n', 'Connection: close\r\n',
  'Connection: Content-Length, Authorization\r\n', 'Expect: 100-continue\r\n', 'Expect: 200-ok\r\n', 'Content-Encoding: gzip\r\n',
  'Content-Encoding: br, gzip\r\n', 'Upgrade: websocket\r\n', 'X-HTTP-Method-Override: DELETE\r\n', 'Content-Type: multipart/mixed\r\n',
  'boundary=', 'application/http', 'binary', 'Content-ID: 1\r\n', 'Prefer: return=minimal\r\n', 'charset=utf-16',
] as const satisfies readonly [string, ...string[]] // prettier-ignore

type Mutation = (bytes: Buffer, random: Random) => Buffer

const place = (bytes: Buffer, random: Random): number => random.below(bytes.length + 1)
const span = (bytes: Buffer, random: Random): readonly [from: number, to: number] => {
  const from = place(bytes, random)
  return [from, Math.min(bytes.length, from + 1 + random.below(random.chance(0.2) ? 400 : 12))]
}
const replace = (bytes: Buffer, from: number, to: number, by: Buffer): Buffer =>
  Buffer.concat([bytes.subarray(0, from), by, bytes.subarray(to)])

const flip: Mutation = (bytes, random) => {
  const copy = Buffer.from(bytes)
  const at = random.below(Math.max(1, copy.length))
  if (copy.length > 0) copy[at] = random.below(256)
  return copy
}
const insert: Mutation = (bytes, random) => {
  const at = place(bytes, random)
  return replace(bytes, at, at, Buffer.from(random.pick(awkward)))
}
const overwrite: Mutation = (bytes, random) =>
  replace(bytes, ...span(bytes, random), Buffer.from(random.pick(awkward)))
const remove: Mutation = (bytes, random) => replace(bytes, ...span(bytes, random), Buffer.alloc(0))
const repeat: Mutation = (bytes, random) => {
  const [from, to] = span(bytes, random)
  const times = random.chance(0.1) ? 200 : 1 + random.below(4)
  return replace(bytes, to, to, Buffer.concat(Array.from({ length: times }, () => bytes.subarray(from, to))))
}
const cut: Mutation = (bytes, random) => bytes.subarray(0, place(bytes, random))
const swapCase: Mutation = (bytes, random) => {
  const [from, to] = span(bytes, random)
  return replace(bytes, from, to, Buffer.from(bytes.toString('latin1', from, to).toUpperCase(), 'latin1'))
}

const mutations: readonly [Mutation, ...Mutation[]] = [
  flip,
  insert,
  insert,
  overwrite,
  remove,
  repeat,
  cut,
  swapCase,
]

export function mutate(bytes: Buffer, random: Random): Buffer {
  let mutated = bytes
  for (let count = random.chance(0.5) ? 1 : 1 + random.below(4); count > 0; count -= 1)
    mutated = random.pick(mutations)(mutated, random)
  return mutated
}

export function splice(bytes: Buffer, other: Buffer, random: Random): Buffer {
  const [from, to] = span(other, random)
  const at = place(bytes, random)
  return replace(bytes, at, at, other.subarray(from, to))
}
