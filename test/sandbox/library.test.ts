import { request } from 'undici'
import { expect, onTestFinished, test } from 'vitest'
import { createSandbox, type SandboxOptions } from '../../src/index.ts'
import { sandboxHeaders, testNow } from './start-sandbox.ts'

test('the package exports the sandbox for programs that embed the sandbox', async () => {
  const options: SandboxOptions = { now: testNow, port: 0 }
  const sandbox = createSandbox(options)
  onTestFinished(() => sandbox.close())
  const { url } = await sandbox.listen()
  const { statusCode } = await request(`${url}/V3/LearnerIdentifiers?$top=1`, { headers: sandboxHeaders })
  expect(statusCode).toBe(200)
})
