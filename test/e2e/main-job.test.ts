import { readFile } from 'node:fs/promises'

import { beforeEach, describe, expect, test } from 'vitest'

import { decodeBatchReply, type ReplyPart } from '../../src/v2/index.ts'
import { sandboxHeaders, startSandbox } from '../sandbox/start-sandbox.ts'
import { batchPath } from '../support/batch-request.ts'
import { atEndOfFile } from '../support/end-of-file.ts'
import { startAdapter } from '../support/start-adapter.ts'

/** The class register that the tests post, over sockets, to an adapter in front of the sandbox. */
const body = await readFile(new URL('../../fixtures/class-register/body.txt', import.meta.url))
const text = body.toString('utf8')
const BATCH = /^--(\S+)/.exec(text)?.[1] ?? ''
const CHANGESET = /boundary=(\S+)/.exec(text)?.[1] ?? ''
const STRANGER = 'batch_ffffffff-ffff-4fff-8fff-ffffffffffff'

const onEnd = atEndOfFile()
const started = (async () => {
  const sandbox = await startSandbox({}, onEnd)
  return { sandbox, adapter: await startAdapter(sandbox.url, {}, {}, onEnd) }
})()
beforeEach(async () => {
  await (await started).sandbox.request('POST', '/_sandbox/reset')
})

async function post(content: Buffer | string, boundary: string) {
  const { adapter } = await started
  const headers = { ...sandboxHeaders, 'Content-Type': `multipart/mixed; boundary=${boundary}` }
  return adapter.request('POST', batchPath, { headers, body: content })
}
const effects = async () => (await (await started).sandbox.effects()) as { learner: string }[]

/** Returns the Content-ID and status of a part, and its learner or error codes, without the values that change in every run. */
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
  { name: 'in the form of the V2 interface', content: text, boundary: BATCH },
  { name: 'with bare line feeds', content: text.replaceAll('\r\n', '\n'), boundary: BATCH },
  {
    name: 'with quoted boundaries in both headers',
    content: text.replace(`boundary=${CHANGESET}`, `boundary="${CHANGESET}"`),
    boundary: `"${BATCH}"`,
  },
  { name: 'with the changeset id in the header', content: text, boundary: CHANGESET },
  {
    name: 'with batch_<changeset id> in the header',
    content: text,
    boundary: CHANGESET.replace('changeset', 'batch'),
  },
]

test.each(forms)(
  'the adapter answers a class register $name with 27 created and 3 refused parts in request order',
  async ({ content, boundary }) => {
    const { status, headers, text: reply } = await post(content, boundary)
    const contentType = String(headers['content-type'])
    expect(status).toBe(200)
    expect(contentType).toMatch(/^multipart\/mixed; boundary=batchresponse_[0-9a-f-]{36}$/)
    expect(decodeBatchReply(Buffer.from(reply), contentType).parts.map(shape)).toEqual(expected)
    const written = (await effects()).map(({ learner }) => learner)
    const accepted = learners.filter((_, index) => failures[index + 1] === undefined)
    expect(written.sort()).toEqual([...accepted].sort())
  },
)

describe('a batch that breaks off', () => {
  // The offsets at which the body breaks off: several around each delimiter, and one every 163 bytes.
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
    'gets 400 and writes no mark, wherever the body breaks off (boundary %s in the header)',
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
