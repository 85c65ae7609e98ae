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

/** The names of the switches that are on. */
async function switchesOn(): Promise<readonly string[]> {
  const { text } = await olga.ask('/sandbox')
  const isOn = /name="switch" value="(\w+)"[^>]*>[^<]*<\/button><span class="badge/g
  return [...text.matchAll(isOn)].map(([, name = '']) => name)
}

test('each switch is one that the service takes, and is on until another one of its kind is', async () => {
  const { text } = await olga.ask('/sandbox')
  const names = [...text.matchAll(/name="switch" value="(\w+)"/g)].map(([, name = '']) => name)
  expect([names.length, await switchesOn()]).toEqual([16, ['off', 'asSent', 'agree']])
  for (const name of names) {
    await olga.ask('/sandbox', { form: { switch: name } })
    expect(await switchesOn()).toContain(name)
  }
  expect(await switchesOn()).toEqual(['slow', 'zero', 'missing'])
})

test('the page has ids of the school to try, and its JSON all of them', async () => {
  const { text } = await olga.ask('/sandbox', { headers: { accept: 'application/json' } })
  const { school } = JSON.parse(text) as { school: { learners: string[]; codes: { code: string }[] } }
  expect(school.learners.length).toBeGreaterThan(20)
  expect(school.codes.map(({ code }) => code)).toContain('/')
  expect((await olga.ask('/sandbox')).text).toContain(school.learners[0])
})
