import { connect } from 'node:net'

import { describe, expect, it } from 'vitest'

import { toMapping } from '../../src/app/partners.ts'
import { inspectRecording } from '../../src/cli/recordings/inspect-recording.ts'
import { parseConfig } from '../../src/config/index.ts'
import { errorRules } from '../../src/errors.ts'
import { decodeBatchReply, defaultBatchLimits } from '../../src/v2/index.ts'
import { loadFixtures } from '../e2e/support/fixture.ts'
import { exchange } from '../e2e/support/raw-exchange.ts'
import { headerOf, type RawMessage, readMessage } from '../e2e/support/raw-message.ts'
import { batchPath } from '../support/batch-request.ts'
import { startUpstream } from '../support/scripted-upstream.ts'
import { runs } from '../support/long-run.ts'
import { startAdapter } from '../support/start-adapter.ts'
import { createRandom, type Random } from '../../src/sandbox/random.ts'
import { mutate } from '../walls/fuzz/mutate.ts'
import { batchOf, costlyRecords, hostileBodies } from '../v2/support/hostile.ts'

/** The verdict of the adapter or of `check` on a request. */
interface Verdict {
  /** If the whole request is refused: the code or status of the adapter's error, or `any` in a verdict of `check`. Otherwise `undefined`. */
  readonly refused: string | undefined
  /** The position and the codes of each refused record, or `undefined` if the reply hides them. */
  readonly parts: readonly (readonly [part: number, codes: string])[] | undefined
}

interface Refusal {
  readonly error: { readonly code: string }
  readonly statusCode: number
}

interface Settings {
  readonly partner: object
  readonly limits: Readonly<Record<string, number>>
}

/** Sends the request to an adapter in front of a service that accepts every record. */
async function ask(bytes: Buffer, { partner, limits }: Settings): Promise<Verdict> {
  const upstream = await startUpstream()
  const partners = [{ id: 'partner', match: { any: true }, ...partner }]
  const adapter = await startAdapter(upstream.url, { partners, limits })
  const reply = await exchange(adapter.port, bytes, [], () => undefined)
  return readVerdict(reply)
}

function readVerdict(reply: RawMessage): Verdict {
  if (!reply.startLine.includes(' 200 ')) {
    // An error in the form of the service's API gateway, such as a missing key, has a `statusCode` in place of an error code.
    const { error, statusCode } = JSON.parse(reply.body.toString()) as Partial<Refusal>
    return { refused: error?.code ?? String(statusCode), parts: [] }
  }
  const isHidden = reply.body.includes('changesetresponse_') && !reply.body.includes('HTTP/1.1 ')
  const answer = decodeBatchReply(reply.body, headerOf(reply, 'content-type'))
  const parts = answer.parts.flatMap((part, index) => {
    if (part.status < 300) return []
    const errors = JSON.parse(part.body) as { ErrorCode: string }[]
    return [[index + 1, errors.map(({ ErrorCode }) => ErrorCode).join()] as const]
  })
  return { refused: undefined, parts: isHidden ? undefined : parts }
}

interface Checked extends Verdict {
  /** The code and the status of every error. */
  readonly codes: readonly string[]
  /** True if `check` repaired the head of the recording. */
  readonly isMended: boolean
}

const statuses = new Map(Object.entries(errorRules).map(([code, { status }]) => [code, status]))

/** Returns the verdict of `check` on the same bytes. */
async function check(bytes: Buffer, { partner, limits }: Settings): Promise<Checked> {
  const config = parseConfig({
    upstreams: { v3: { baseUrl: 'http://v3.test' } },
    partners: [{ id: 'partner', match: { any: true }, ...partner }],
  })
  const [own] = config.partners
  if (own === undefined) throw new Error('no partner')
  const { sound, records, findings } = await inspectRecording(bytes, {
    limits: { ...defaultBatchLimits, ...limits },
    serviceHosts: own.serviceHosts === undefined ? undefined : new Set(own.serviceHosts),
    mapping: toMapping(own),
    bodyProfile: own.v3.bodyProfile,
    boundary: undefined,
  })
  const isMended = findings.some(({ code }) => code === 'bareLfInHead' || code === 'noContentLength')
  const errors = findings.filter(({ severity }) => severity === 'error')
  const parts = records
    .filter(({ v3 }) => v3 === null)
    .map(({ part }) => {
      const codes = errors.filter((error) => error.part === part).map(({ code }) => code)
      return [part, codes.join()] as const
    })
  return {
    refused: sound ? undefined : 'any',
    parts: sound ? parts : [],
    codes: errors.flatMap(({ code }) => [code, String(statuses.get(code) ?? 400)]),
    isMended,
  }
}

async function expectAgreement(bytes: Buffer, settings: Settings): Promise<void> {
  const [asked, checked] = await Promise.all([ask(bytes, settings), check(bytes, settings)])
  expect(checked.refused !== undefined).toBe(asked.refused !== undefined)
  if (asked.refused !== undefined) expect(checked.codes).toContain(asked.refused)
  else if (asked.parts !== undefined) expect(checked.parts).toEqual(asked.parts)
}

const fixtures = await loadFixtures()
const plain: Settings = { partner: {}, limits: {} }
const SIZE = 2 * 1_048_576

/** Creates an HTTP request with this body and the header fields that a V2 client sends. */
function requestOf(body: string, boundary: string): Buffer {
  const lines = [
    `POST ${batchPath} HTTP/1.1`,
    'Host: adapter.test',
    'Ocp-Apim-Subscription-Key: k',
    'Authorization: bearer t',
    `Content-Type: multipart/mixed; boundary="${boundary}"`,
    `Content-Length: ${Buffer.byteLength(body)}`,
  ]
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n${body}`)
}

describe('the command check', () => {
  it.each(fixtures)(
    'reports the same errors as the adapter for the fixture $name: $title',
    async ({ bytes, partner, limits }) => {
      await expectAgreement(bytes, { partner, limits })
    },
  )

  it.each(hostileBodies(SIZE))(
    'reports the same errors as the adapter for the hostile body "%s"',
    async (_, expected, text, boundary = 'b') => {
      const bytes = requestOf(text(), boundary)
      await expectAgreement(bytes, plain)
      const { codes } = await check(bytes, plain)
      if (typeof expected === 'string') expect(codes).toContain(expected)
    },
  )

  it.each(costlyRecords)(
    'reports the same error as the adapter for a record with too many %s',
    async (_, json) => {
      await expectAgreement(requestOf(batchOf(json), 'b'), plain)
    },
  )

  const sound = requestOf(batchOf('{}'), 'b').toString()
  it.each<[what: string, request: string]>([
    ['no subscription key', sound.replace(/Ocp.*\r\n/, '')],
    ['an empty subscription key', sound.replace('Key: k', 'Key: ')],
    ['no token', sound.replace(/Auth.*\r\n/, '')],
    ['another scheme than bearer', sound.replace('bearer', 'Basic')],
    ['no Content-Type', sound.replace(/Content-Type.*\r\n/, '')],
    ['two hosts', sound.replace('Host', 'Host: a\r\nHost')],
    ['an invalid host', sound.replace('adapter.test', 'a b')],
    ['another method', sound.replace('POST /', 'PUT /')],
    ['a path with a dot segment', sound.replace('/V2/', '/x/../V2/')],
    ['an absolute target', sound.replace('POST /', 'POST http://other.test/')],
    ['an unsupported Content-Encoding', sound.replace('Host', 'Content-Encoding: zstd\r\nHost')],
    [
      'a Content-Encoding that does not match the body',
      sound.replace('Host', 'Content-Encoding: gzip\r\nHost'),
    ],
    ['a folded header', sound.replace('Host: ', 'Host:\r\n ')],
  ])('reports the same error as the adapter for a request with %s', async (_, request) => {
    await expectAgreement(Buffer.from(request), plain)
  })

  it('reports errors for exactly those randomly broken requests and records that the adapter refuses', async () => {
    // With short timeouts the adapter soon answers requests that are incomplete.
    const slowClients = { headersMs: 250, uploadMs: 250 }
    const adapter = await startAdapter((await startUpstream()).url, {}, { slowClients })
    const random = createRandom(1, 'check agrees')
    const seeds = fixtures.filter(({ name }) => broken.includes(name))
    for (let run = 0; run < runs(80, 1_000); run += 1) {
      const seed = seeds[random.below(seeds.length)]
      if (seed === undefined) throw new Error('no fixture to start from')
      const bytes = breakRequest(seed.bytes, random)
      const [reply, checked] = await Promise.all([askRaw(adapter.port, bytes), check(bytes, plain)])
      if (checked.isMended) continue
      const asked = reply === undefined ? { refused: 'closed', parts: [] } : readVerdict(reply)
      const verdict = { refused: asked.refused !== undefined, parts: asked.parts ?? checked.parts }
      const isRefused = checked.refused !== undefined || checked.codes.includes('bytesAfterRequest')
      expect({ run, refused: isRefused, parts: checked.parts }).toEqual({ run, ...verdict })
    }
  })
})

/** The fixtures that the test breaks at random. */
const broken = ['blank-lines', 'chunked-transfer', 'gzip-body', 'several-changesets', 'single-quotes']

/** Changes random bytes of the whole request, or only of its body, with a Content-Length that matches the changed body. */
function breakRequest(bytes: Buffer, random: Random): Buffer {
  if (random.chance(0.3)) return mutate(bytes, random)
  const end = bytes.indexOf('\r\n\r\n') + 4
  const body = mutate(bytes.subarray(end), random)
  const head = bytes.toString('latin1', 0, end).replace(/(?<=Content-Length: )\d+/, String(body.length))
  return Buffer.concat([Buffer.from(head, 'latin1'), body])
}

/** Sends the bytes and returns the response, or `undefined` if there is none. */
function askRaw(port: number, bytes: Buffer): Promise<RawMessage | undefined> {
  return new Promise((resolve) => {
    const received: Buffer[] = []
    const socket = connect({ port, host: '127.0.0.1' })
    const read = (): RawMessage | undefined => readMessage(Buffer.concat(received))
    socket.on('data', (chunk: Buffer) => {
      received.push(chunk)
      if (read() !== undefined) socket.destroy()
    })
    socket.on('error', () => undefined)
    socket.on('close', () => resolve(read()))
    socket.write(bytes)
  })
}
