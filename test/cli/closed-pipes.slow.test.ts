import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'

import { expect, onTestFinished, test, vi } from 'vitest'

import { makeFolder } from '../journal/open-sqlite.ts'
import { mainOfCli } from '../support/main-of-cli.ts'

const patient = { timeout: 60_000 }

test.each([1, 2])(
  "an adapter with %d worker(s) keeps serving and reloading after the reader of the adapter's output has disconnected",
  patient,
  async (workers) => {
    const folder = await makeFolder()
    const file = join(folder, 'markbridge.yaml')
    // Each new file names another partner with an expired rule, so that each reload logs a warning.
    const use = (id: string): Promise<void> => {
      const rule = { name: id, owner: 'o', reason: 'r', expires: '2020-01-01', path: 'Comment', when: { v3Class: '*' } } // prettier-ignore
      const config = {
        listen: { port: 0 },
        upstreams: { v3: { baseUrl: 'http://127.0.0.1:1' } },
        journal: { url: `sqlite:${join(folder, 'journal.db')}` },
        partners: [{ id, match: { any: true }, compare: { rules: [rule] } }],
      }
      return writeFile(file, JSON.stringify(config))
    }
    await use('one')
    const args = ['serve', '--config', file, '--workers', String(workers)]
    const child = spawn(process.execPath, [mainOfCli, ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
    const exited = once(child, 'exit')
    onTestFinished(() => void child.kill('SIGKILL'))
    let printed = ''
    child.stdout.setEncoding('utf8').on('data', (text: string) => (printed += text))
    child.stderr.resume()
    await vi.waitFor(() => expect(printed).toMatch(/ready \S+\n/), 30_000)
    const url = /ready (\S+)/.exec(printed)?.[1] ?? ''
    child.stdout.destroy()
    child.stderr.destroy()
    for (const [reloads, id] of ['two', 'three', 'four'].entries()) {
      await use(id)
      child.kill('SIGHUP')
      // Each request opens a new connection, so that any worker may answer.
      await vi.waitFor(async () => {
        const page = await (await fetch(`${url}/metrics`, { headers: { Connection: 'close' } })).text()
        expect(page).toContain(`markbridge_config_reloads_total{result="reloaded"} ${reloads + 1}\n`)
        expect(page).not.toMatch(/^markbridge_worker_ends_total [^0]/m)
      }, 20_000)
      expect((await fetch(`${url}/elsewhere`, { headers: { Connection: 'close' } })).status).toBe(401)
    }
    child.kill('SIGTERM')
    expect(await exited).toEqual([0, null])
  },
)
