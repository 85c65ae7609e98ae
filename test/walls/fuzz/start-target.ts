import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { createSandbox } from '../../../src/sandbox/index.ts'
import { startCli } from '../../cli/run-cli.ts'
import type { Seeds } from './requests.ts'

/** The adapter as served in production, in its own process, in front of the sandbox. */
export interface Target {
  readonly port: number
  readonly seeds: Seeds
  /** Returns the memory of the adapter's process in MiB, or `undefined` if there is no /proc. */
  memoryMiB(): Promise<number | undefined>
  internalErrors(): readonly string[]
  /** Stops the adapter with SIGTERM and resolves with its exit status. */
  close(): Promise<number | null>
}

const fixtures = new URL('../../../fixtures/', import.meta.url)

/** Starts the sandbox and the adapter with a journal in a folder that is removed at the end. */
export async function startTarget(): Promise<Target> {
  const sandbox = createSandbox({ now: '2026-06-10T10:00:00Z' })
  const { url } = await sandbox.listen()
  const folder = await mkdtemp(join(tmpdir(), 'markbridge-fuzz-'))
  const config = join(folder, 'markbridge.yaml')
  await writeFile(config, JSON.stringify(settingsFor(url, join(folder, 'journal.db'))))
  const adapter = startCli(['serve', '--config', config], { MARKBRIDGE_LOG_LEVEL: 'error' })
  const ready = await adapter.until(/ready \S+\n/)
  const samples = (await (await fetch(`${url}/_sandbox/samples`)).json()) as {
    learners: string[]
    events: string[]
    codes: { id: string }[]
  }
  return {
    port: Number(/:(\d+)\n/.exec(ready)?.[1]),
    seeds: {
      recorded: await recordedRequests(),
      learners: atLeastOne(samples.learners),
      events: atLeastOne(samples.events),
      code: samples.codes[0]?.id ?? '',
    },
    memoryMiB: () => memoryOf(adapter.pid),
    internalErrors: () =>
      adapter
        .errors()
        .split('\n')
        .filter((line) => line.includes('"level":50')),
    close: async () => {
      const status = await adapter.stop()
      await sandbox.close()
      await rm(folder, { recursive: true })
      return status
    },
  }
}

function atLeastOne<Item>([first, ...others]: readonly Item[]): readonly [Item, ...Item[]] {
  if (first === undefined) throw new Error('there is nothing to draw from')
  return [first, ...others]
}

const settingsFor = (v3: string, journal: string): object => ({
  listen: { port: 0 },
  upstreams: { v3: { baseUrl: v3 } },
  journal: { url: `sqlite:${journal}` },
  partners: [{ id: 'acme', match: { any: true } }],
})

async function recordedRequests(): Promise<readonly [Buffer, ...Buffer[]]> {
  const entries = await readdir(fixtures, { withFileTypes: true })
  const names = entries.filter((entry) => entry.isDirectory()).map(({ name }) => name)
  const requests = await Promise.all(
    names.sort().map((name) => readFile(new URL(`${name}/request.http`, fixtures))),
  )
  return atLeastOne(requests.filter(({ length }) => length < 65_536).map(asSandboxClient))
}

/** Replaces the credentials, because the sandbox accepts other credentials than the service of the fixtures. */
function asSandboxClient(request: Buffer): Buffer {
  const text = request.toString('latin1')
  const known = text
    .replace(/^(ocp-apim-subscription-key *: *)[^\r\n]+/im, '$1sandbox')
    .replace(/^(authorization *: *)[^\r\n]+/im, '$1bearer sandbox')
  return Buffer.from(known, 'latin1')
}

async function memoryOf(pid: number | undefined): Promise<number | undefined> {
  const status = await readFile(`/proc/${pid ?? 0}/status`, 'utf8').catch(() => '')
  const kib = /VmRSS:\s+(\d+) kB/.exec(status)?.[1]
  return kib === undefined ? undefined : Number(kib) / 1_024
}
