import { expect, test } from 'vitest'

import { makeFolder } from '../journal/open-sqlite.ts'
import { startUpstream, unavailable } from '../support/scripted-upstream.ts'
import { startCli } from './run-cli.ts'

test('serve with a console ends with status 0 and logs "stopped" after a signal', async () => {
  const [{ url }, folder] = [await startUpstream(unavailable), await makeFolder()]
  const ports = ['--port', '0', '--console', '0']
  const serve = startCli(['serve', '--v3', url, ...ports, '--journal', `sqlite:${folder}/journal.db`])
  await serve.until(/^console link/m)
  expect(await serve.stop()).toBe(0)
  expect(serve.errors()).toContain('"msg":"stopped"')
})
