import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'

import { Pool } from 'undici'
import { describe, expect, onTestFinished, test, vi } from 'vitest'

import { batchOf, batchPath, flatRecord } from '../support/batch-request.ts'
import { freePort } from '../support/free-port.ts'
import { haproxy, missingBalancer, nginx, startBalancer } from '../support/load-balancers/start-balancer.ts'
import { mainOfCli } from '../support/main-of-cli.ts'
import { echoRecord, startUpstream } from '../support/scripted-upstream.ts'
import { clientHeaders } from '../support/start-adapter.ts'

async function startInstance(v3: string, port: number): Promise<ChildProcess> {
  const args = [mainOfCli, 'serve', '--v3', v3, '--port', String(port), '--journal', 'none']
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'ignore'] })
  onTestFinished(() => void child.kill('SIGKILL'))
  let printed = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (printed += text))
  await vi.waitFor(() => expect(printed).toMatch(/ready \S+\n/), 60_000)
  return child
}

const CLIENTS = 8

describe.each([nginx, haproxy])('a rolling restart behind deploy/$file', (balancer) => {
  test.skipIf(missingBalancer(balancer) !== undefined)(
    'answers every batch with 200 if the load balancer stops using each instance before the instance stops',
    async () => {
      const v3 = await startUpstream(echoRecord)
      const ports = [await freePort(), await freePort(), await freePort()]
      const instances = await Promise.all(
        ports.map(async (port) => ({ port, process: await startInstance(v3.url, port) })),
      )
      const { port, rotate } = await startBalancer(balancer, ...ports)
      // Clients do not reuse connections, because nginx closes connections when it reloads its file.
      const pool = new Pool(`http://127.0.0.1:${port}`, { connections: CLIENTS, pipelining: 0 })
      onTestFinished(() => pool.destroy())
      const counts = new Map<number, number>()
      const end = new AbortController()
      const post = async (client: number): Promise<void> => {
        for (let n = client; !end.signal.aborted; n += CLIENTS) {
          const { body, headers } = batchOf([flatRecord(n)])
          const fields = { ...headers, ...clientHeaders }
          const reply = await pool.request({ method: 'POST', path: batchPath, headers: fields, body })
          await reply.body.dump()
          counts.set(reply.statusCode, (counts.get(reply.statusCode) ?? 0) + 1)
        }
      }
      const clients = Promise.all(Array.from({ length: CLIENTS }, (_, client) => post(client)))
      const restartAll = async (): Promise<void> => {
        for (const instance of instances) {
          await rotate(instance.port, false)
          instance.process.kill('SIGTERM')
          await once(instance.process, 'exit')
          await startInstance(v3.url, instance.port)
          await rotate(instance.port, true)
        }
      }
      await Promise.all([clients, restartAll().finally(() => end.abort())])
      expect([...counts.keys()]).toEqual([200])
    },
  )
})
