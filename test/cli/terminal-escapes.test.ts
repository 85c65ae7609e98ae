import { join } from 'node:path'

import { expect, test } from 'vitest'

import { createBatchEncoder } from '../../src/v2/batch/encode-batch.ts'
import { batchOf, flatRecord, flatRecords, guid } from '../support/batch-request.ts'
import { type Answer, replyWith, startUpstream } from '../support/scripted-upstream.ts'
import { ownFile } from './own-file.ts'
import type { CliResult } from './run-cli.ts'
import { runCommand } from './run-command.ts'

/**
 * Text that clears the screen, sets the title of the window, sets a colour (as one C1 character), returns to the start of the line,
 * deletes a character, and reverses the direction of the text.
 */
const HOSTILE = '\u001b[2J\u001b]0;owned\u0007\u009b31m\rok\u007f\u202e'

function expectPlain({ stdout, stderr }: CliResult): void {
  expect((stdout + stderr).match(/[^\P{Cc}\n]|[\p{Cf}\p{Zl}\p{Zp}]/u)).toBeNull()
}

const fileWith = (text: string, name = 'batch.txt'): Promise<string> => ownFile(name, text)

async function send(answer: Answer, ...args: string[]): Promise<CliResult> {
  const { url } = await startUpstream(answer)
  return runCommand(['send', await fileWith(batchOf(flatRecords(1)).body), '--to', url, ...args])
}

const errors = [{ ErrorCode: `X${HOSTILE}`, Message: `no${HOSTILE}\nforged line` }]

const hostileReply: Answer = (_seen, response) => {
  const encoder = createBatchEncoder('flat', () => guid(1))
  const json = JSON.stringify(errors)
  const part = { contentId: '\u009b31m', contentIdInHttp: false, changeset: 1, status: 400, json }
  response.writeHead(200, { 'Content-Type': encoder.contentType })
  response.end(encoder.part(part) + encoder.close(0))
}

test('send prints no control characters and no line breaks that come from a reply', async () => {
  const text = await send(hostileReply)
  expectPlain(text)
  expect(text.stdout).toMatch(/400 .*X\?\[2J.*forged line\n0 accepted/)
  const json = await send(hostileReply, '--json')
  expectPlain(json)
  expect(JSON.parse(json.stdout)).toMatchObject({
    records: [{ errors: [{ code: errors[0]?.ErrorCode, message: errors[0]?.Message }] }],
  })
})

test.each([
  ['JSON', { error: { code: `E${HOSTILE}`, message: `m${HOSTILE}`, details: [{ target: HOSTILE }] } }],
  ['text', `gone${HOSTILE}\nforged line`],
])('send prints no control characters from an error in %s', async (_form, body) => {
  const result = await send(replyWith(502, body))
  expectPlain(result)
  expect(result.stderr.split('\n')).toHaveLength(2)
})

const hostileBatch = batchOf(
  [flatRecord(1, { Comment: HOSTILE, [`Field${HOSTILE}`]: 1 }), `{"Learner":"${HOSTILE}"`],
  { inner: [`X-Own: ${HOSTILE.replaceAll('\r', '')}`, 'Content-ID: \u001b[31m'] },
).body

const hostileComment = batchOf([flatRecord(1, { Comment: HOSTILE })]).body

test.each([[[]], [['--show']], [['--json']]])(
  'check prints no control characters from a batch with the flags %j',
  async (args) => {
    const others = hostileBatch.replaceAll('--batch', `--${HOSTILE}`)
    for (const text of [hostileComment, hostileBatch, others])
      expectPlain(await runCommand(['check', await fileWith(text), ...args]))
  },
)

test('check --json keeps the control characters of a batch in escaped form', async () => {
  const { stdout } = await runCommand(['check', await fileWith(hostileComment), '--json'])
  expect(JSON.parse(stdout)).toMatchObject({ records: [{ v3: { Qualifier: { Comment: HOSTILE } } }] })
})

test('check prints no control characters from a file name', async () => {
  const file = await fileWith(batchOf(flatRecords(1)).body, `\u001b[31m\u009b.txt`)
  for (const args of [[file], [join(file, '..')], [join(file, '..'), '--json'], [`${file}.none`]])
    expectPlain(await runCommand(['check', ...args]))
})
