import { readFile } from 'node:fs/promises'

import { expect, test } from 'vitest'

import { startSandbox } from '../sandbox/start-sandbox.ts'
import { startAdapter } from '../support/start-adapter.ts'

const readme = await readFile(new URL('../../README.md', import.meta.url), 'utf8')

/** Returns the text of the fenced block with this info string. */
function block(info: string): string {
  return new RegExp(`^\`\`\`${info}\\n([\\s\\S]*?)^\`\`\`$`, 'm').exec(readme)?.[1] ?? ''
}

/** Replaces the values that change in every run: boundaries, ids from the service, times and ports. */
function settled(text: string): string {
  return text
    .replaceAll(/batchresponse_[0-9a-f-]{36}/g, 'batchresponse_{id}')
    .replaceAll(/("(?:ExternalID|SequenceID)":")[0-9a-f-]{36}/g, '$1{id}')
    .replaceAll(/("RecordedOn":")[^"]+/g, '$1{now}')
    .replaceAll(/127\.0\.0\.1:\d+/g, '{host}')
    .replaceAll(/Content-Length: \d+/g, 'Content-Length: {n}')
}

test('the adapter answers the batch in the README with the reply in the README', async () => {
  const request = block('http request').replaceAll('\n', '\r\n')
  expect(request).not.toBe('')
  const sandbox = await startSandbox()
  const { url: base } = await startAdapter(sandbox.url)
  const response = await fetch(`${base}/sp-api-write-back-partner-live/V2/Attendance/$batch`, {
    method: 'POST',
    headers: {
      'Ocp-Apim-Subscription-Key': 'sandbox',
      Authorization: 'bearer sandbox',
      'Content-Type': 'multipart/mixed; boundary=batch_36522ad7-fc75-4b56-8c71-56071383e77b',
    },
    body: request,
  })
  expect(settled((await response.text()).replaceAll('\r\n', '\n'))).toBe(settled(block('http reply')))
})

test('every npm script that the README names exists', async () => {
  const { scripts } = JSON.parse(await readFile(new URL('../../package.json', import.meta.url), 'utf8')) as {
    scripts: Record<string, string>
  }
  const named = [...readme.matchAll(/npm (?:run (?:-s )?)?(start|test|markbridge)\b/g)].map(
    ([, name]) => name,
  )
  expect(new Set(named)).toEqual(new Set(['start', 'test', 'markbridge']))
  for (const name of named) expect(scripts).toHaveProperty(name ?? '')
})
