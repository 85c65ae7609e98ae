import { afterAll, beforeAll, expect, test } from 'vitest'

import { createSandboxControl } from '../../src/cli/console/open-console.ts'
import { createSandbox } from '../../src/sandbox/index.ts'
import { type RunningConsole, startConsole } from './support/start-console.ts'

const service = createSandbox()
let running: RunningConsole
let olga: Awaited<ReturnType<RunningConsole['enter']>>
beforeAll(async () => {
  const { url } = await service.listen()
  running = await startConsole({}, { sandbox: createSandboxControl(url) })
  olga = await running.enter('olga')
})
afterAll(async () => {
  await running.close()
  await service.close()
})

/** Returns the name of the active fault. */
async function switchOn(): Promise<string | undefined> {
  const { text } = await olga.ask('/sandbox')
  return /name="switch" value="(\w+)"[^>]*>[^<]*<\/button><span class="badge/.exec(text)?.[1]
}

test('the sandbox accepts each fault that the console offers, and keeps the fault active until another fault is chosen', async () => {
  const { text } = await olga.ask('/sandbox')
  const names = [...text.matchAll(/name="switch" value="(\w+)"/g)].map(([, name = '']) => name)
  expect([names.length, await switchOn()]).toEqual([6, 'off'])
  for (const name of names) {
    await olga.ask('/sandbox', { form: { switch: name } })
    expect(await switchOn()).toBe(name)
  }
})

test('the sandbox page of the console shows some ids of the school, and its JSON document contains all ids', async () => {
  const { text } = await olga.ask('/sandbox', { headers: { accept: 'application/json' } })
  const { school } = JSON.parse(text) as { school: { learners: string[]; codes: { code: string }[] } }
  expect(school.learners.length).toBeGreaterThan(20)
  expect(school.codes.map(({ code }) => code)).toContain('/')
  expect((await olga.ask('/sandbox')).text).toContain(school.learners[0])
})
