import { execFile } from 'node:child_process'
import { randomBytes, X509Certificate } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

import { describe, expect, it, onTestFinished } from 'vitest'

import { createSelfSigned } from '../../src/cli/self-signed.ts'
import { makeFolder } from '../journal/open-sqlite.ts'
import { startSandbox } from '../sandbox/start-sandbox.ts'
import { findProgram } from '../support/find-program.ts'
import { startCli } from './run-cli.ts'

const openssl = findProgram('openssl')
const run = promisify(execFile)
const patient = { timeout: 20_000 }
const serialOf = ({ cert }: { readonly cert: string }): string => new X509Certificate(cert).serialNumber

/** Returns the serial number of the certificate that a listener shows to `openssl s_client`. */
async function shownAt(url: string): Promise<string | undefined> {
  const { host } = new URL(url)
  const script = `${openssl} s_client -connect ${host} </dev/null 2>/dev/null | ${openssl} x509 -noout -serial`
  return /serial=(\w+)/.exec((await run('bash', ['-c', script])).stdout)?.[1]
}

async function serve(...options: readonly string[]) {
  const folder = await makeFolder()
  const [cert, key] = [join(folder, 'cert.pem'), join(folder, 'key.pem')]
  const write = async (pair: { readonly cert: string; readonly key: string }): Promise<void> => {
    await writeFile(key, pair.key)
    await writeFile(cert, pair.cert)
  }
  const first = createSelfSigned(Date.now())
  await write(first)
  const tls = { cert: { file: cert }, key: { file: key } }
  const journal = {
    url: `sqlite:${join(folder, 'journal.db')}`,
    keys: [{ id: 'k1', key: { env: 'JOURNAL_KEY' } }],
  }
  const upstreams = { v3: { baseUrl: (await startSandbox()).url } }
  const config = join(folder, 'markbridge.yaml')
  await writeFile(
    config,
    JSON.stringify({ listen: { port: 0, tls }, console: { port: 0, tls }, journal, upstreams }),
  )
  const cli = startCli(['serve', '--config', config, ...options], {
    JOURNAL_KEY: randomBytes(32).toString('base64'),
  })
  onTestFinished(async () => {
    await cli.stop()
  })
  const printed = await cli.until(/console ready \S+\n/)
  const urls = /adapter ready (https:\S+)\n[^]*console ready (https:\S+)\n/.exec(printed)?.slice(1) ?? []
  return { cli, urls, write, first }
}

describe.skipIf(openssl === undefined)('a certificate on disk', () => {
  it('is used by two workers and the console, and is replaced by SIGHUP', async () => {
    const { cli, urls, write, first } = await serve('--workers', '2')
    // Connects to each address twice to reach both workers, which get connections in turn.
    const shown = (): Promise<unknown[]> => Promise.all([...urls, ...urls].map(shownAt))
    expect(await shown()).toEqual(Array(4).fill(serialOf(first)))
    const second = createSelfSigned(Date.now())
    await write(second)
    process.kill(cli.pid ?? 0, 'SIGHUP')
    await expect.poll(shown, patient).toEqual(Array(4).fill(serialOf(second)))
  })

  it('is replaced with --watch when its file changes, unless the new certificate does not match the key', async () => {
    const { cli, urls, write, first } = await serve('--watch')
    const second = createSelfSigned(Date.now())
    await write({ cert: second.cert, key: first.key })
    const refused = await cli.logged({ msg: 'config refused' })
    expect(JSON.stringify(refused)).toContain('listen.tls.key')
    expect(await Promise.all(urls.map(shownAt))).toEqual(Array(2).fill(serialOf(first)))
    await write(second)
    await expect.poll(() => Promise.all(urls.map(shownAt)), patient).toEqual(Array(2).fill(serialOf(second)))
  })
})

if (openssl === undefined)
  console.warn('SKIPPED: openssl shows the certificates of listeners (Debian: apt-get install openssl).')

it('the demo with --tls prints a curl line that works over https', async () => {
  const demo = startCli(['demo', '--tls', '--port', '0', '--sandbox-port', '0', '--journal', 'none'])
  onTestFinished(async () => {
    await demo.stop()
  })
  const line = /^curl -sS --cacert .*https:.*$/m.exec(await demo.until(/Stop with/))?.[0] ?? ''
  const { stdout } = await run('bash', ['-c', line])
  expect(stdout.match(/HTTP\/1\.1 201/g)).toHaveLength(27)
})
