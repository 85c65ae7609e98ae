import { randomUUID } from 'node:crypto'
import { buffer } from 'node:stream/consumers'
import { setFlagsFromString } from 'node:v8'

import express from 'express'

import { toFlatReply, toV3Record } from '../src/translate/index.ts'
import { createBatchEncoder, decodeBatch, encodeFlatReply, type PartReply } from '../src/v2/index.ts'
import { encodeRecord } from '../src/v3/index.ts'
import { parsePostReply } from '../src/v3/outcome.ts'
import { serveCommands } from './child.ts'
import { legacyBatch } from './legacy-batch.ts'
import { atATime, createPosts, makeBodies, mapping } from './v3-posts.ts'

// The baseline for the latency of the adapter: Express, undici and the adapter's codec, without limits, order, shares, lost replies,
// credentials and log. Arguments: the port of the upstream, the number of concurrent requests, and optionally `posts`. With `posts` the
// process decodes and encodes nothing, and sends bodies and a reply that it prepared at its start.

// The same V8 options as in src/cli/main.ts.
setFlagsFromString('--no-allocation-site-pretenuring')
setFlagsFromString('--heap-growing-percent=60')
const [port = 0, concurrency = 16] = process.argv.slice(2).map(Number)
const post = createPosts(port)
const CONTEXT = `http://127.0.0.1/V2/Attendance/$metadata#AttendanceRecords/$entity`

interface Converted {
  readonly contentType: string
  readonly text: string
}

async function convert(bytes: Buffer, requestType: string): Promise<Converted> {
  const recordedOn = new Date().toISOString()
  const { parts, changesets } = decodeBatch(bytes, requestType)
  const replies: PartReply[] = []
  await atATime(concurrency, parts.length, async (index) => {
    const part = parts[index]
    const record = part?.record && toV3Record(part.record, mapping, recordedOn).record
    if (part === undefined || record === undefined) throw new Error('a record without one of V3')
    const outcome = parsePostReply(201, await post(encodeRecord(record, 'full')), undefined, 0)
    if (outcome.kind !== 'accepted') throw new Error(outcome.kind)
    const { contentId, contentIdInHttp, changeset } = part
    const json = encodeFlatReply(toFlatReply(record, outcome.reply), CONTEXT, part.metadata)
    replies[index] = { contentId, contentIdInHttp, changeset, status: 201, json }
  })
  const encoder = createBatchEncoder('flat', randomUUID)
  const text = replies.map((reply) => encoder.part(reply)).join('') + encoder.close(changesets.length)
  return { contentType: encoder.contentType, text }
}

/** Converts one batch in advance, and returns a function that only posts the bodies and returns the stored reply. */
async function prepare(): Promise<(bytes: Buffer) => Promise<Converted>> {
  const { bytes, contentType } = legacyBatch(30, 0)
  const bodies = makeBodies()
  const reply = await convert(bytes, contentType)
  return async () => {
    await atATime(concurrency, bodies.length, async (index) => {
      await post(bodies[index] ?? '')
    })
    return reply
  }
}

const answer = process.argv[4] === 'posts' ? await prepare() : convert
const app = express()
app.post(/\$batch$/, async (request, response) => {
  const { contentType, text } = await answer(await buffer(request), request.headers['content-type'] ?? '')
  response.writeHead(200, { 'Content-Type': contentType })
  response.write(text)
  response.end()
})
// A client is idle during the rounds of the other candidates, so its connection must stay open for that time.
const KEEP_ALIVE_MS = 60_000
const server = app.listen(0, '127.0.0.1', () => {
  server.keepAliveTimeout = KEEP_ALIVE_MS
  const address = server.address()
  serveCommands({ port: typeof address === 'object' && address !== null ? address.port : 0 }, {})
})
