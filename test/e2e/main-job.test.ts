import { readFile } from 'node:fs/promises'

import { Pool } from 'undici'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'

import { type App, createApp, parseConfig } from '../../src/index.ts'
import { createSandbox, type Sandbox } from '../../src/sandbox/index.ts'
import { decodeBatchReply, type ReplyPart } from '../../src/v2/index.ts'

const journal = { url: 'none' }

/** The whole way on real parts: a V2 client, the adapter, the sandbox over sockets. */
const body = await readFile(new URL('../../fixtures/class-register/body.txt', import.meta.url))
const text = body.toString('utf8')
const BATCH = /^--(\S+)/.exec(text)?.[1] ?? ''
const CHANGESET = /boundary=(\S+)/.exec(text)?.[1] ?? ''
const STRANGER = 'batch_ffffffff-ffff-4fff-8fff-ffffffffffff'

let sandbox: Sandbox
let app: App
let pool: Pool
let service: Pool

beforeAll(async () => {
  sandbox = createSandbox()
  const { url } = await sandbox.listen()
  service = new Pool(url)
  app = createApp(parseConfig({ journal, listen: { port: 0 }, upstreams: { v3: { baseUrl: url } } }), {
    logLevel: 'silent',
  })
  pool = new Pool((await app.listen()).url, { connections: 4 })
})
afterAll(async () => {
  await Promise.all([pool.close(), service.close()])
  await app.close()
  await sandbox.close()
})
beforeEach(async () => {
  await (await service.request({ path: '/_sandbox/reset', method: 'POST' })).body.dump()
})

interface Answer {
  readonly status: number
  readonly contentType: string
  readonly bytes: Buffer
}

async function post(content: Buffer | string, boundary: string): Promise<Answer> {
  const reply = await pool.request({
    path: '/sp-api-write-back-partner-live/V2/Attendance/$batch',
    method: 'POST',
    headers: {
      'ocp-apim-subscription-key': 'sandbox',
      authorization: 'bearer sandbox',
      'content-type': `multipart/mixed; boundary=${boundary}`,
    },
    body: content,
  })
  const bytes = Buffer.from(await reply.body.arrayBuffer())
  return { status: reply.statusCode, contentType: String(reply.headers['content-type']), bytes }
}

async function effects(): Promise<{ learner: string }[]> {
  const reply = await service.request({ path: '/_sandbox/effects', method: 'GET' })
  return (await reply.body.json()) as { learner: string }[]
}

/** What a client reads of a part, without what is new in every run. */
function shape(part: ReplyPart): string {
  const json = JSON.parse(part.body) as { Learner: string } | { ErrorCode: string }[]
  const content = Array.isArray(json) ? json.map(({ ErrorCode }) => ErrorCode).join('+') : json.Learner
  return `${part.contentId ?? ''} ${part.status} ${content}`
}

const learners = [...text.matchAll(/"Learner":"([^"]+)"/g)].map(([, learner]) => learner)
const failures: Readonly<Record<number, string>> = {
  9: 'ATT_VAL_2',
  17: 'ATT_VAL_3',
  25: 'ATT_VAL_2+ATT_VAL_3',
}
const expected = learners.map((learner, index) => {
  const failure = failures[index + 1]
  return failure === undefined ? `${index + 1} 201 ${learner ?? ''}` : `${index + 1} 400 ${failure}`
})

const forms: readonly { name: string; content: string; boundary: string }[] = [
  { name: 'as the V2 interface has it', content: text, boundary: BATCH },
  { name: 'with bare line feeds', content: text.replaceAll('\r\n', '\n'), boundary: BATCH },
  {
    name: 'with quoted boundaries in both headers',
    content: text.replace(`boundary=${CHANGESET}`, `boundary="${CHANGESET}"`),
    boundary: `"${BATCH}"`,
  },
  { name: 'with the changeset in the header', content: text, boundary: CHANGESET },
  {
    name: 'with batch_<changeset id> in the header',
    content: text,
    boundary: CHANGESET.replace('changeset', 'batch'),
  },
]

test.each(forms)(
  'a class register $name: 27 created, 3 refused, in order, 27 effects',
  async ({ content, boundary }) => {
    const { status, contentType, bytes } = await post(content, boundary)
    expect(status).toBe(200)
    expect(contentType).toMatch(/^multipart\/mixed; boundary=batchresponse_[0-9a-f-]{36}$/)
    expect(decodeBatchReply(bytes, contentType).parts.map(shape)).toEqual(expected)
    const written = (await effects()).map(({ learner }) => learner)
    const accepted = learners.filter((_, index) => failures[index + 1] === undefined)
    expect(written.sort()).toEqual([...accepted].sort())
  },
)

test('a stranger in the header: one 200 without parts, and 27 effects all the same', async () => {
  const { status, contentType, bytes } = await post(body, STRANGER)
  expect(status).toBe(200)
  expect(
    bytes
      .toString()
      .replaceAll(/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, '{id}')
      .split('\r\n'),
  ).toEqual([
    '--batchresponse_{id}',
    'Content-Type: multipart/mixed; boundary=changesetresponse_{id}',
    '',
    '--changesetresponse_{id}--',
    '--batchresponse_{id}--',
    '',
  ])
  expect(decodeBatchReply(bytes, contentType).parts).toEqual([])
  expect(await effects()).toHaveLength(27)
})

describe('cut off', () => {
  // Everywhere near a delimiter, and in steps through the rest; the codec's tests cut at every byte.
  const end = text.lastIndexOf('--') + 2
  const near = [...text.matchAll(/\r\n--/g)].flatMap(({ index }) => [
    index,
    index + 2,
    index + 3,
    index + 4,
    index + 45,
  ])
  const offsets = [
    ...new Set([...Array.from({ length: 120 }, (_, step) => step * 163), ...near, end - 1, end - 2]),
  ]

  test.each([BATCH, CHANGESET, STRANGER])(
    'anywhere, with %s in the header: 400 and no effect',
    async (boundary) => {
      const cuts = offsets.filter((offset) => offset < end)
      const statuses = await Promise.all(
        cuts.map(async (offset) => (await post(body.subarray(0, offset), boundary)).status),
      )
      expect(new Set(statuses)).toEqual(new Set([400]))
      expect(await effects()).toEqual([])
    },
  )
})
