import { readFileSync } from 'node:fs'

import { beforeAll, expect, test } from 'vitest'

import { guid } from '../support/batch-request.ts'
import { atEndOfFile } from '../support/end-of-file.ts'
import { HUSH, serveConsole, type ServedConsole } from './support/serve-console.ts'

const onEnd = atEndOfFile()
let served: ServedConsole
beforeAll(async () => {
  served = await serveConsole(onEnd)
})

async function tryFile(file: Buffer) {
  return JSON.parse(await served.tryFile(file)) as {
    readonly reply?: {
      head: string
      parts: { ifAccepted?: string; otherwise: string }[]
      end: string
      v3Id: string
    }
  }
}

/** Removes the values that differ from reply to reply. */
const plain = (text: string, v3Id: string): string =>
  text
    .replaceAll(/batchresponse_[0-9a-f-]{36}/g, 'batchresponse')
    .replaceAll(/"SequenceID":"[^"]*"/g, '')
    // V3 may change the values of these members.
    .replaceAll(/"(?:RecordedOn|ChangeProcessName|AttendableEventStart|RecordedBy)":(?:"[^"]*"|null)/g, '')
    .replaceAll(/"@odata.context":"[^"]*"/g, '')
    .replaceAll(/Content-Length: \d+/g, '')
    .replaceAll(/"ExternalID":"[^"]*"/g, `"ExternalID":"${v3Id}"`)

test('the page "Try it" shows the reply that the adapter sends to the batch', async () => {
  const file = readFileSync('fixtures/class-register/body.txt')
  const { reply } = await tryFile(file)
  const boundary = /^--(\S+)/.exec(file.toString())?.[1] ?? ''
  const headers = { 'Content-Type': `multipart/mixed; boundary=${boundary}` }
  const before = (await served.sandbox.effects()).length
  expect(before).toBe(0)
  const real = await served.post({ headers, body: file.toString() })
  if (reply === undefined) throw new Error('no reply')
  const isAccepted = real.text.split('--batchresponse_').slice(1, -1).map((part) => part.includes('201 Created')) // prettier-ignore
  const shown = reply.parts.map(({ ifAccepted, otherwise }, at) => (isAccepted[at] === true ? ifAccepted : otherwise)) // prettier-ignore
  expect(new Set(isAccepted)).toEqual(new Set([true, false]))
  // Leaves the errors out of the comparison, because only V3 knows which rule a record breaks.
  const anyCode = (text: string): string => text.replaceAll(/\[\{"Message".*\}\]/g, '[]')
  expect(anyCode(plain(shown.join('') + reply.end, reply.v3Id))).toBe(anyCode(plain(real.text, reply.v3Id)))
  expect(reply.head).toContain('HTTP/1.1 200 OK\r\nContent-Type: multipart/mixed; boundary=batchresponse_')
})

test.each([
  ['a batch whose ids differ gets a single 200', 'ids-differ', 200, 0],
  ['a truncated batch is refused as a whole', 'header-names-changeset-truncated', 400, 0],
])('the page "Try it" shows that %s', async (_, fixture, status, parts) => {
  const { reply } = await tryFile(readFileSync(`fixtures/${fixture}/request.http`))
  expect([reply?.head.split(' ')[1], reply?.parts.length]).toEqual([String(status), parts])
})

test('the explanation of a record shows both translations, made from its stored request and its stored part', async () => {
  const [own, bad] = [served.mark(), served.mark({ SchoolAttendanceCode: guid(5) })]
  await served.postMarks([own, bad, '{"Learner": "HUSHCOMMENT"}'])
  await served.isIndexed(2)
  const explain = async (part: number, reason?: string) => {
    const { text } = await served.ask(
      'olga',
      `/batches/2/${part}`,
      reason === undefined ? undefined : { reason },
    )
    expect(text.includes(HUSH) || text.includes(String(own.Learner))).toBe(reason !== undefined && part === 1)
    return (
      JSON.parse(text) as { explained: { reply: { status: number; fields: Record<string, unknown>[] } } }
    ).explained
  }
  const masked = await explain(1)
  const fieldOf = (path: string) => masked.reply.fields.find((one) => one['path'] === path)

  expect(masked.reply.status).toBe(201)
  expect([fieldOf('ExternalID'), fieldOf('Comment'), fieldOf('AttendanceHistorys')]).toEqual([
    {
      path: 'ExternalID',
      from: 'ExternalID',
      rule: 'the id that V3 assigned',
      value: 'a guid',
      isMasked: true,
    },
    {
      path: 'Comment',
      from: 'Qualifier/Comment',
      rule: "the value in V3's response, else the posted value, else null",
      value: 'a text',
      isMasked: true,
    },
    {
      path: 'AttendanceHistorys',
      rule: 'empty, as in replies of V2 to a write',
      value: '[]',
      isMasked: false,
    },
  ])
  const refused = await explain(2)
  expect(refused.reply).toMatchObject({
    status: 400,
    fields: [
      { path: '0/Message', value: 'a text', isMasked: true },
      {
        path: '0/ErrorCode',
        value: '"ATT_VAL_3"',
        isMasked: false,
        rule: expect.stringContaining('attendance code') as string,
      },
      { path: '0/ResourceIdentifier' },
      { path: '0/SequenceID', isMasked: false },
    ],
  })
  expect((await explain(3)).reply.fields[1]).toMatchObject({
    rule: 'a code of the adapter (docs/replies.md)',
  })

  const revealed = await explain(1, 'a parent asks')
  expect(revealed.reply.fields.find((one) => one['path'] === 'Learner')?.['value']).toBe(
    JSON.stringify(own.Learner),
  )
  expect((await served.ask('olga', '/audit')).text).toContain('acme: batch 2, part 1: a parent asks')
  expect((await served.ask('otto', '/batches/2/1', { reason: 'I am curious' })).status).toBe(403)
})
