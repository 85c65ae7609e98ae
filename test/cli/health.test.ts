import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'

import { expect, it } from 'vitest'

import { createSelfSigned } from '../../src/cli/self-signed.ts'
import { Secret } from '../../src/config/index.ts'
import { makeFolder } from '../journal/open-sqlite.ts'
import { freePort } from '../support/free-port.ts'
import { startAdapter } from '../support/start-adapter.ts'
import { runCommand } from './run-command.ts'

const nowhere = 'http://127.0.0.1:1'

async function configFile(listen: object): Promise<string> {
  const path = join(await makeFolder(), 'markbridge.yaml')
  await writeFile(path, JSON.stringify({ listen, upstreams: { v3: { baseUrl: nowhere } } }))
  return path
}

it('health calls the adapter at the port in the configuration, even if the adapter listens on all addresses', async () => {
  const adapter = await startAdapter(nowhere)
  const config = await configFile({ port: adapter.port, host: '0.0.0.0' })
  expect(await runCommand(['health', '--config', config])).toEqual({
    status: 0,
    stdout: `${adapter.url}/healthz answers 200.\n`,
    stderr: '',
  })
  const ready = await runCommand(['health', '--ready', '--json', adapter.url])
  expect([ready.status, JSON.parse(ready.stdout)]).toEqual([
    0,
    { url: `${adapter.url}/readyz`, status: 200, isWell: true },
  ])
})

it('health exits with status 1 if no adapter answers, and with status 2 if no port is known', async () => {
  const unheard = await runCommand(['health', `http://127.0.0.1:${await freePort()}`])
  expect([unheard.status, unheard.stdout]).toEqual([1, ''])
  expect(unheard.stderr).toContain('ECONNREFUSED')
  const adapter = await startAdapter(nowhere)
  await adapter.app.close()
  expect((await runCommand(['health', adapter.url])).status).toBe(1)
  expect((await runCommand(['health', '--config', await configFile({ port: 0 })])).status).toBe(2)
})

it('health uses https, without checking the certificate, if the configuration has a certificate', async () => {
  const { cert, key } = createSelfSigned(Date.now())
  const tls = { cert: new Secret(cert), key: new Secret(key) }
  const adapter = await startAdapter(nowhere, { listen: { port: 0, tls } })
  const config = await configFile({ port: adapter.port, tls: { cert: { env: 'CERT' }, key: { env: 'KEY' } } })
  const found = await runCommand(['health', '--config', config], { CERT: cert, KEY: key })
  expect([found.status, found.stdout]).toEqual([0, expect.stringMatching(/^https:.* answers 200\.\n$/)])
})
