import { createRequire } from 'node:module'
import type { Readable, Writable } from 'node:stream'
import { fileURLToPath } from 'node:url'

import * as z from 'zod'

type Header = Readonly<Record<string, readonly string[] | undefined>>
type DicerClass = new (options: { boundary: string }) => Writable

/** A part of a batch. Dicer reads the MIME headers. This module reads the request line, the HTTP headers and the JSON. */
export interface DicerPart {
  readonly mime: Header
  readonly requestLine: string
  readonly http: ReadonlyMap<string, string>
  readonly body: unknown
}

/** Loads the Dicer of `@fastify/busboy`, and decodes with one Dicer for the batch and one for each changeset. */
export function createDicerDecoder(): (bytes: Buffer, contentType: string) => Promise<DicerPart[]> {
  const require = createRequire(import.meta.url)
  const path = './node_modules/@fastify/busboy/deps/dicer/lib/Dicer.js'
  const loaded: unknown = require(fileURLToPath(new URL(path, import.meta.url)))
  const Dicer = z.custom<DicerClass>((value) => typeof value === 'function').parse(loaded)
  return async (bytes, contentType) => {
    const parts: DicerPart[] = []
    const changesets: Promise<void>[] = []
    const outer = split(Dicer, contentType, (header, stream) => {
      const inner = split(Dicer, header['content-type']?.[0] ?? '', (mime, record) => {
        const chunks: Buffer[] = []
        record.on('data', (chunk: Buffer) => chunks.push(chunk))
        record.on('end', () => parts.push(readPart(mime, chunks)))
      })
      changesets.push(inner.finished)
      stream.pipe(inner.dicer)
    })
    outer.dicer.end(bytes)
    await outer.finished
    await Promise.all(changesets)
    return parts
  }
}

function split(
  Dicer: DicerClass,
  contentType: string,
  onPart: (header: Header, stream: Readable) => void,
): { dicer: Writable; finished: Promise<void> } {
  const dicer = new Dicer({ boundary: /boundary=(\S+)/i.exec(contentType)?.[1] ?? '' })
  dicer.on('part', (stream: Readable) => {
    stream.once('header', (header: Header) => {
      onPart(header, stream)
    })
  })
  const finished = new Promise<void>((resolve, reject) => {
    dicer.once('finish', resolve)
    dicer.once('error', reject)
  })
  return { dicer, finished }
}

function readPart(mime: Header, chunks: readonly Buffer[]): DicerPart {
  const [first] = chunks
  const bytes = chunks.length === 1 && first !== undefined ? first : Buffer.concat(chunks)
  const end = bytes.indexOf('\r\n\r\n')
  const [requestLine = '', ...lines] = bytes.toString('latin1', 0, end).split('\r\n')
  const http = new Map<string, string>()
  for (const line of lines) {
    const colon = line.indexOf(':')
    http.set(line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim())
  }
  return { mime, requestLine, http, body: JSON.parse(bytes.toString('utf8', end + 4)) }
}
