import { spawn } from 'node:child_process'
import { once } from 'node:events'

import { describe, expect, it, onTestFinished } from 'vitest'

import { batchOf, batchPath, flatRecords } from '../support/batch-request.ts'
import { mainOfCli } from '../support/main-of-cli.ts'
import { RawClient, requestText } from '../support/raw-client.ts'
import { startUpstream } from '../support/scripted-upstream.ts'

const CROWD = 600
const { headers, body } = batchOf(flatRecords(20))
const batch = requestText(
  `POST ${batchPath}`,
  `Connection: close\r\nContent-Type: ${headers['Content-Type'] ?? ''}\r\nContent-Length: ${body.length}\r\n`,
  body,
)

/** Starts an adapter that may have at most 256 files open. */
async function serveWithFewFiles(v3: string) {
  const command = `ulimit -n 256 && exec "$0" "$@"`
  const args = [process.execPath, mainOfCli, 'serve', '--v3', v3, '--port', '0', '--journal', 'none']
  const child = spawn('sh', ['-c', command, ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
  const exited = once(child, 'exit')
  onTestFinished(async () => {
    child.kill('SIGTERM')
    await exited
  })
  let [printed, log] = ['', '']
  child.stdout.on('data', (chunk: Buffer) => (printed += chunk.toString('utf8')))
  child.stderr.on('data', (chunk: Buffer) => (log += chunk.toString('utf8')))
  const portOf = (): string | undefined => /ready http:\S+:(\d+)\n/.exec(printed)?.[1]
  await expect.poll(portOf, { timeout: 60_000 }).toBeDefined()
  return { port: Number(portOf()), log: () => log }
}

describe('an adapter with a limit of 256 open files', () => {
  it.each([
    ['send half a request head', 'GET /V3/x HTTP/1.1\r\nHost: x\r\nX-Un'],
    ['send nothing', ''],
    ['stay open after a reply', 'GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n'],
  ])('keeps serving while 600 connections %s', { timeout: 120_000 }, async (_name, bytes) => {
    const upstream = await startUpstream()
    const { port, log } = await serveWithFewFiles(upstream.url)
    const crowd = Array.from({ length: CROWD }, () => RawClient.open(port, bytes))
    await Promise.all(crowd)
    for (let count = 0; count < 5; count += 1) {
      const client = await RawClient.open(port, batch)
      const reply = await client.untilClosed()
      expect(reply.match(/HTTP\/1\.1 201 /g)).toHaveLength(20)
    }
    await expect.poll(log).toContain('"msg":"connections at the limit of open files"')
    expect(log()).toContain('may open 256 files')
    expect(log()).not.toContain('writes fail on V3')
  })
})
