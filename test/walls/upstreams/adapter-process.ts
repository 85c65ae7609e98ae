import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

import type { Random } from '../../../src/sandbox/random.ts'
import { startCli } from '../../cli/run-cli.ts'
import { mainWithOverrides, overridesIn } from '../../support/main-of-cli.ts'

/** The partners with client credentials. There are several because the adapter requests only one token at a time for each partner. */
const tokens = Array.from({ length: 8 }, (_, n) => `token${n}`)
/** The choices for the partner of an exchange. The partners differ in their write mode, stage or credentials. */
export const ways: readonly [() => string, ...((random: Random) => string)[]] = [
  () => 'single',
  () => 'multipart',
  () => 'json',
  () => 'auto',
  () => 'legacy',
  (random) => `token${random.below(tokens.length)}`,
]

export interface AdapterProcess {
  readonly port: number
  /** Returns the exit status and last output of the process if it ended by itself, or `undefined` while it runs. */
  crash(): string | undefined
  /** Resolves with the processor time, in milliseconds, of the longest turn of the event loop since the last call. */
  longestTurnMs(): Promise<number>
  /** Resolves with the partners whose records in all states do not add up to their received records. */
  unbalanced(): Promise<string[]>
  internalErrors(): readonly string[]
  /** Stops the adapter with SIGTERM, and resolves with its exit status or with null if it had to be killed. */
  close(): Promise<number | null>
}

/** Milliseconds after which `close` kills an adapter that does not end. */
const STOP_MS = 30_000

/** Starts the adapter in its own process in front of this service. Its timeouts are short so that many exchanges fit into one run. */
export async function startAdapterProcess(service: string): Promise<AdapterProcess> {
  const folder = await mkdtemp(join(tmpdir(), 'markbridge-upstreams-'))
  const config = join(folder, 'markbridge.yaml')
  await writeFile(config, JSON.stringify(settingsFor(service, join(folder, 'journal.db'))))
  const watch = fileURLToPath(new URL('watch-turns.mjs', import.meta.url))
  const env = {
    ...overridesIn({ acquireMs: 2_000 }),
    MARKBRIDGE_LOG_LEVEL: 'error',
    NODE_OPTIONS: `--import ${watch}`,
    ODD_SECRET: 'secret',
  }
  const adapter = startCli(['serve', '--config', config], env, mainWithOverrides)
  const port = Number(/:(\d+)\n/.exec(await adapter.until(/ready \S+\n/))?.[1])
  let asked = 0
  let crash: string | undefined
  const ended = adapter.ended().then(({ status, stderr }) => {
    crash = `exit ${status}: ${stderr.slice(-600)}`
  })
  return {
    port,
    crash: () => crash,
    longestTurnMs: async () => {
      process.kill(adapter.pid ?? 0, 'SIGUSR2')
      asked += 1
      const lines = await adapter.until(new RegExp(`(?:longest turn \\S+\\n[^]*){${asked}}`))
      return Number([...lines.matchAll(/longest turn (\S+)\n/g)].at(-1)?.[1])
    },
    unbalanced: async () => unbalancedIn(await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()),
    internalErrors: () =>
      adapter
        .errors()
        .split('\n')
        .filter((line) => line !== '' && (!line.startsWith('{') || line.includes('"internal error"'))),
    close: async () => {
      const late = setTimeout(() => void adapter.stop('SIGKILL').catch(() => undefined), STOP_MS)
      const status = await adapter.stop()
      await ended
      clearTimeout(late)
      await rm(folder, { recursive: true })
      return status
    },
  }
}

function unbalancedIn(metrics: string): string[] {
  const sums = new Map<string, { received: number; states: number }>()
  const line = /^markbridge_journal_(received|records)\{partner="([^"]+)"[^}]*\} (\d+)$/gm
  for (const [, name, partner = '', count] of metrics.matchAll(line)) {
    const sum = sums.get(partner) ?? { received: 0, states: 0 }
    sums.set(partner, sum)
    sum[name === 'received' ? 'received' : 'states'] += Number(count)
  }
  const wrong = [...sums].filter(([, { received, states }]) => received !== states)
  return sums.size === 0
    ? ['no partner has a balance']
    : wrong.map(([partner, sum]) => `${partner} ${JSON.stringify(sum)}`)
}

const partnerOf = (id: string, v3: object, more: object = {}): object => ({
  id,
  match: { header: { name: 'X-Way', value: id } },
  v3: { budgetMs: 1_500, readBackAfterMs: [20, 40], callsPerSecond: 'none', ...v3 },
  ...more,
})

const settingsFor = (service: string, journal: string): object => ({
  listen: { port: 0, drainMs: 2_000 },
  upstreams: {
    v3: { baseUrl: service, connections: 64, timeouts: { connectMs: 1_000, headersMs: 250, bodyMs: 250 } },
    v2: { baseUrl: service, timeouts: { connectMs: 1_000, headersMs: 250 } },
  },
  journal: { url: `sqlite:${journal}`, keys: [] },
  partners: [
    partnerOf('single', { writeMode: 'single' }),
    partnerOf('multipart', { writeMode: 'batch', batchFormat: 'multipart' }),
    partnerOf('json', { writeMode: 'batch', batchFormat: 'json' }),
    partnerOf('auto', { writeMode: 'auto' }),
    ...tokens.map((id, n) =>
      partnerOf(id, {
        writeMode: 'single',
        subscriptionKey: { env: 'ODD_SECRET' },
        auth: {
          mode: 'clientCredentials',
          ...{ tokenUrl: `${service}/token/${n}`, clientId: 'c', scope: 's' },
          clientSecret: { env: 'ODD_SECRET' },
        },
      }),
    ),
    partnerOf('legacy', {}, { stage: 'legacy' }),
  ],
})
