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
async function switchOn(): Promise<string | null> {
  const { text } = await olga.ask('/sandbox', { headers: { accept: 'application/json' } })
  return (JSON.parse(text) as { switch: string | null }).switch
}

test('the sandbox accepts each fault that the console offers, and keeps the fault active until another fault is chosen', async () => {
  expect(await switchOn()).toBe('off')
  const { text } = await olga.ask('/sandbox')
  const names = [...text.matchAll(/name="switch" value="(\w+)"/g)].map(([, name = '']) => name)
  expect(names).toHaveLength(5)
  for (const name of [...names, 'off']) {
    await olga.ask('/sandbox', { form: { switch: name } })
    expect(await switchOn()).toBe(name)
  }
})
