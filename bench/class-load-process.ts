import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'

import * as z from 'zod'

import { serveCommands } from './child.ts'
import { legacyBatch } from './legacy-batch.ts'
import { median } from './rounds.ts'

// V2 clients that post registers of the sandbox's school. No combination of class and session repeats within 240 batches. A client reads
// the whole reply before its next batch. `busy:<port>` runs a round of 16 clients without pauses. `calm:<port>` runs a round of 4
// clients that pause about 50 ms. `all:<port>` and `each:<port>` send each batch once, without and with pauses. Arguments: the length of a
// round in ms, the port of the sandbox, and the ports of V2 and of the adapters.

const RECORDS = 30
const BATCHES = 240
const BUSY = { clients: 16, pauseMs: 0 }
const CALM = { clients: 4, pauseMs: 50 }
const SLOW = { clients: 2, pauseMs: 100 }
const CREATED = 'HTTP/1.1 201 Created\r\n'
const samplesSchema = z.object({
  learners: z.array(z.string()),
  events: z.array(z.string()),
  codes: z.array(z.object({ id: z.string(), code: z.string() })),
})

const [durationMs = 1_000, sandboxPort = 0, ...ports] = process.argv.slice(2).map(Number)
const reply = await fetch(`http://127.0.0.1:${sandboxPort}/_sandbox/samples`)
const samples = samplesSchema.parse(await reply.json())

interface Batch {
  readonly request: Buffer
  /** The offsets in the request at which the id of the batch occurs. */
  readonly ids: readonly number[]
}

function toBatch(index: number): Batch {
  const { learners, events, codes } = samples
  const classes = Math.floor(learners.length / RECORDS)
  if (classes * events.length < BATCHES) throw new Error('the school is too small')
  const event = events[Math.floor(index / classes)] ?? ''
  const present = codes.find(({ code }) => code === '/' || code === 'P')?.id ?? codes[0]?.id ?? ''
  let learner = (index % classes) * RECORDS
  const { bytes, contentType } = legacyBatch(RECORDS, 0x7fffffff)
  const body = bytes
    .toString('latin1')
    .replaceAll(/"Learner":"[^"]*"/g, () => `"Learner":"${learners[learner++] ?? ''}"`)
    .replaceAll(/"AttendableEvent":"[^"]*"/g, `"AttendableEvent":"${event}"`)
    .replaceAll(/"SchoolAttendanceCode":"[^"]*"/g, `"SchoolAttendanceCode":"${present}"`)
  const head = [
    'POST /V2/Attendance/$batch HTTP/1.1',
    'Host: 127.0.0.1',
    `Content-Type: ${contentType}`,
    `Content-Length: ${body.length}`,
    'Authorization: Bearer sandbox',
    'Ocp-Apim-Subscription-Key: sandbox',
  ]
  const request = Buffer.from(`${head.join('\r\n')}\r\n\r\n${body}`)
  const id = contentType.slice(-12)
  const ids: number[] = []
  for (let at = request.indexOf(id); at !== -1; at = request.indexOf(id, at + 12)) ids.push(at)
  return { request, ids }
}

const batches = Array.from({ length: BATCHES }, (_, index) => toBatch(index))
let sent = 0

/** Sends the next batch with a new id, and returns the time to the end of its reply in ms. Rejects if a mark was not created. */
function sendNext(socket: Socket): Promise<number> {
  const { request, ids } = batches[sent % BATCHES] ?? toBatch(0)
  sent += 1
  for (const at of ids) request.write(sent.toString(16).padStart(12, '0'), at, 'latin1')
  const start = performance.now()
  return new Promise((resolve, reject) => {
    let text = ''
    const finish = (settle: () => void): void => {
      socket.off('data', onData).off('close', onClose)
      settle()
    }
    const onClose = (): void => finish(() => reject(new Error(`the connection was closed: ${text}`)))
    const onData = (chunk: Buffer): void => {
      text += chunk.toString('latin1')
      if (!isWhole(text)) return
      const ms = performance.now() - start
      const isCreated = text.startsWith('HTTP/1.1 200 ') && text.split(CREATED).length === RECORDS + 1
      finish(() => {
        if (isCreated) resolve(ms)
        else reject(new Error(text.slice(0, 2_000)))
      })
    }
    socket.on('data', onData).on('close', onClose)
    socket.write(request)
  })
}

function isWhole(text: string): boolean {
  const head = text.indexOf('\r\n\r\n')
  if (head === -1) return false
  const length = /\r\ncontent-length: *(\d+)/i.exec(text.slice(0, head))?.[1]
  return length === undefined ? text.endsWith('\r\n0\r\n\r\n') : text.length >= head + 4 + Number(length)
}

async function drive(
  port: number,
  { clients, pauseMs }: typeof BUSY,
  isOn: (sinceMs: number) => boolean,
): Promise<{ requests: number; ms: number; p50Ms: number; p99Ms: number }> {
  const sockets = Array.from({ length: clients }, () => connect({ port, host: '127.0.0.1', noDelay: true }))
  await Promise.all(sockets.map((socket) => once(socket, 'connect')))
  const times: number[] = []
  const start = performance.now()
  await Promise.all(
    sockets.map(async (socket) => {
      while (isOn(performance.now() - start)) {
        times.push(await sendNext(socket))
        // The pauses differ, so that the clients do not send at the same moment.
        if (pauseMs > 0) await pause(pauseMs * (0.5 + Math.random()))
      }
    }),
  )
  const ms = performance.now() - start
  for (const socket of sockets) socket.destroy()
  times.sort((one, other) => one - other)
  const p99Ms = times[Math.floor(times.length * 0.99)] ?? Number.NaN
  return { requests: times.length, ms, p50Ms: median(times), p99Ms }
}

/** Sends each batch once. */
function driveEach(port: number, load: typeof BUSY): ReturnType<typeof drive> {
  const last = sent + BATCHES
  return drive(port, load, () => sent < last)
}

serveCommands(
  {},
  Object.fromEntries(
    ports.flatMap((port) => [
      [`all:${port}`, () => driveEach(port, BUSY)],
      [`each:${port}`, () => driveEach(port, SLOW)],
      [`busy:${port}`, () => drive(port, BUSY, (ms) => ms < durationMs)],
      [`calm:${port}`, () => drive(port, CALM, (ms) => ms < durationMs)],
    ]),
  ),
)
