import { expect, test } from 'vitest'

import { startCli } from './run-cli.ts'

test('serve logs that Node.js or a library issued a warning, but not the text of the warning', async () => {
  const warn = `process.on('newListener', (name) => {
    if (name === 'warning') setImmediate(() => process.emitWarning('hush', { type: 'OwnWarning', code: 'OWN' }))
  })`
  const args = ['serve', '--v3', 'http://127.0.0.1:1', '--journal', 'none', '--port', '0']
  const served = startCli(args, { NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(warn)}` })
  const log = await served.untilErrors(/runtime warning/)
  await served.stop()
  expect(log).not.toContain('hush')
  const lines = log
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as object)
  expect(lines).toContainEqual(
    expect.objectContaining({ msg: 'runtime warning', warning: 'OwnWarning', code: 'OWN' }),
  )
})
