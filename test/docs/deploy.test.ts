import { existsSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

import { expect, test } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'

import { type Config, parseConfig } from '../../src/config/index.ts'
import { resolveSecrets } from '../../src/config/secret.ts'
import { warningsOf } from '../../src/config/warnings.ts'
import { runCli } from '../cli/run-cli.ts'
import { makeFolder } from '../journal/open-sqlite.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))
const read = (name: string): Promise<string> => readFile(`${root}deploy/${name}`, 'utf8')

const defaults = parseConfig({ upstreams: { v3: { baseUrl: 'http://127.0.0.1:1' } } })

/** Returns the maximum duration of a stop in seconds: the budget of batches in progress, and then the time for clients to read replies. */
function stopSeconds({ listen, partners }: Config): number {
  return (Math.max(...partners.map(({ v3 }) => v3.budgetMs)) + listen.drainMs) / 1_000
}

/** Returns the value at a path of an object that was read from YAML. */
function at(value: unknown, ...path: (string | number)[]): unknown {
  return path.reduce((inner, key) => (inner as Record<string | number, unknown> | undefined)?.[key], value)
}

test('kubernetes.yaml gives an instance enough time to drain, and has a readiness probe', async () => {
  const documents = parseAllDocuments(await read('kubernetes.yaml'))
  expect(documents.flatMap(({ errors }) => errors)).toEqual([])
  const parts = new Map(documents.map((document) => [document.get('kind'), document.toJS() as unknown]))
  expect([...parts.keys()]).toEqual([
    'ConfigMap',
    'Deployment',
    'Service',
    'PodDisruptionBudget',
    'NetworkPolicy',
  ])

  const { value, faults } = await resolveSecrets(
    parse(String(at(parts.get('ConfigMap'), 'data', 'markbridge.yaml'))),
    {
      env: (name) => ({ JOURNAL_URL: 'postgres://db/journal', JOURNAL_KEY: '00'.repeat(32) })[name],
      file: () => Promise.resolve(undefined),
    },
  )
  const config = parseConfig(value, faults)
  const pod = at(parts.get('Deployment'), 'spec', 'template', 'spec')
  const container = at(pod, 'containers', 0)
  const [, pause] = at(container, 'lifecycle', 'preStop', 'exec', 'command') as string[]
  expect(at(pod, 'terminationGracePeriodSeconds')).toBeGreaterThan(Number(pause) + stopSeconds(config))
  expect(config.upstreams.v2?.baseUrl).toBeDefined()
  expect(config.partners.map(({ stage }) => stage)).toEqual(['legacy'])
  expect(warningsOf(config, 1, '2026-11-24')).toEqual([])
  // The root file system is read-only, so `journal.stateDir` must be a mounted volume, which also outlives the process.
  const volume = at(pod, 'volumes', 1)
  const mount = at(container, 'volumeMounts', 1)
  expect(at(container, 'securityContext', 'readOnlyRootFilesystem')).toBe(true)
  expect([at(mount, 'name'), at(volume, 'emptyDir')]).toEqual([at(volume, 'name'), {}])
  expect(config.journal.stateDir).toBe(at(mount, 'mountPath'))
  expect(at(container, 'readinessProbe', 'httpGet', 'path')).toBe('/readyz')
  expect(at(container, 'livenessProbe', 'httpGet', 'path')).toBe('/healthz')
  expect(at(container, 'ports', 0, 'containerPort')).toBe(config.listen.port)
  const environment = at(container, 'env') as { name: string; value?: string }[]
  expect(environment.map(({ name, value: literal }) => [name, literal])).toEqual([
    ['JOURNAL_URL', undefined],
    ['JOURNAL_KEY', undefined],
  ])
  const replicas = Number(at(parts.get('Deployment'), 'spec', 'replicas'))
  expect(at(parts.get('PodDisruptionBudget'), 'spec', 'minAvailable')).toBeLessThan(replicas)
})

test('markbridge.service gives an instance enough time to drain, and has a valid command line', async () => {
  const unit = await read('markbridge.service')
  const entries = [...unit.matchAll(/^(\w+)=(.*)$/gm)].map(([, name = '', value = '']): [string, string] => [
    name,
    value,
  ])
  const setting = Object.fromEntries(entries)
  expect(Number(setting['TimeoutStopSec'])).toBeGreaterThan(stopSeconds(defaults))
  const [, args = ''] = /dist\/cli\/main\.js (.*)$/.exec(setting['ExecStart'] ?? '') ?? []
  expect(args).toBe('serve --config /etc/markbridge/markbridge.yaml')
  expect(setting).toMatchObject({
    DynamicUser: 'yes',
    ExecReload: '/bin/kill -HUP $MAINPID',
    KillMode: 'mixed',
    StateDirectory: 'markbridge',
    // systemd repeats a failed start, unless the adapter refused the configuration (exit status 2).
    Restart: 'always',
    RestartPreventExitStatus: '2',
    StartLimitIntervalSec: '0',
  })
})

test('markbridge.service starts without a file of secrets, and the adapter then names the missing secret', async () => {
  expect(await read('markbridge.service')).toMatch(/^EnvironmentFile=-\/etc\/markbridge\/secrets\.env$/m)
  const file = join(await makeFolder(), 'markbridge.yaml')
  const upstream = 'upstreams: { v3: { baseUrl: http://127.0.0.1:1 } }'
  await writeFile(
    file,
    `${upstream}\njournal: { keys: [{ id: k1, key: { env: MARKBRIDGE_NO_SUCH_KEY } }] }\n`,
  )
  const { status, stderr } = await runCli(['serve', '--config', file])
  expect([status, stderr]).toEqual([2, expect.stringContaining('MARKBRIDGE_NO_SUCH_KEY')])
})

test('the Containerfile copies only existing files, contains no secret and runs as an unprivileged user', async () => {
  const text = (await read('Containerfile')).replaceAll(/\\\n\s*/g, '')
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  const copied = lines
    .filter((line) => line.startsWith('COPY ') && !line.includes('--from'))
    .flatMap((line) => line.split(' ').slice(1, -1))
  expect(copied.filter((name) => !existsSync(root + name))).toEqual([])
  expect(copied).toContain('src')
  const sent = (await readFile(`${root}.dockerignore`, 'utf8')).matchAll(/^!(.*)$/gm)
  expect([...sent].map(([, name]) => name).sort()).toEqual(copied.sort())
  expect(lines.filter((line) => /^(?:ENV|ARG).*(?:KEY|TOKEN|SECRET|PASSWORD|_URL)/i.test(line))).toEqual([])
  expect(lines.findLast((line) => line.startsWith('USER '))).toBe('USER node')
  const command = JSON.parse(lines.findLast((line) => line.startsWith('CMD '))?.slice(4) ?? '[]') as string[]
  const { stdout } = await runCli([...command.slice(0, 1), '--help'])
  for (const option of command.filter((word) => word.startsWith('--'))) expect(stdout).toContain(option)
})

test('the documents, markbridge.service and the Containerfile require the same version of Node.js', async () => {
  const { engines } = JSON.parse(await readFile(`${root}package.json`, 'utf8')) as {
    engines: { node: string }
  }
  const version = engines.node.replace('>=', '')
  const named = [
    'README.md',
    'CONTRIBUTING.md',
    'docs/operations.md',
    'deploy/markbridge.service',
    'src/cli/main.ts',
  ]
  for (const file of named)
    expect(await readFile(root + file, 'utf8'), file).toContain(`Node.js ${version} or newer`)
  const images = (await read('Containerfile')).matchAll(/^FROM \S+\/node:(\d+)/gm)
  expect([...images].map(([, major]) => major)).toEqual(['24', '24'])
  expect(version).toMatch(/^24\./)
})

/** Returns the seconds of a directive such as `proxy_read_timeout 120s;`. */
function secondsOf(text: string, directive: string): number {
  return Number(new RegExp(`^\\s*${directive} (\\d+)s;?$`, 'm').exec(text)?.[1])
}

test.each([
  {
    file: 'nginx.conf',
    wait: 'proxy_read_timeout',
    idle: 'keepalive_timeout',
    forbidden: /proxy_next_upstream [^;]*non_idempotent/,
  },
  {
    file: 'haproxy.cfg',
    wait: 'timeout server',
    idle: 'timeout http-keep-alive',
    forbidden: /retry-on (?!conn-failure$)/m,
  },
])(
  'deploy/$file waits longer than a batch may take, and never resends a batch by itself',
  async ({ file, wait, idle, forbidden }) => {
    const text = await read(file)
    expect(secondsOf(text, wait) * 1_000).toBeGreaterThan(defaults.partners[0]?.v3.budgetMs ?? Infinity)
    expect(secondsOf(text, idle)).toBeLessThan(75)
    expect(text.replaceAll(/^\s*#.*$/gm, '')).not.toMatch(forbidden)
  },
)

test('nginx.conf has the same limit for the size of a body as the adapter', async () => {
  const megabytes = /^\s*client_max_body_size (\d+)m;$/m.exec(await read('nginx.conf'))?.[1]
  expect(Number(megabytes) * 1_048_576).toBe(defaults.limits.maxBodyBytes)
})

/** Returns the pattern by which a file hides operational paths from clients. */
async function operationalPattern(file: string, line: RegExp): Promise<RegExp> {
  return new RegExp(line.exec(await read(file))?.[1] ?? 'no pattern', 'i')
}

/** Returns the path that nginx compares: decoded, with merged slashes and resolved dot segments. */
const nginxPath = (path: string): string =>
  new URL(decodeURIComponent(path).replace(/\/+/g, '/'), 'http://x').pathname
/** Returns the path that HAProxy compares, which is decoded and in lower case. */
const haproxyPath = (path: string): string => decodeURIComponent(path).toLowerCase()

const operational = ['/metrics', '/METRICS', '/metrics/', '/%6detrics', '//metrics', '/./metrics', '/Healthz', '/healthz;x', '/readyz/', '/READY%5a', '/%2e/readyz', '/metrics%20', '/metrics.'] // prettier-ignore
const others = ['/V3/metrics', '/metricsx', '/V2/Attendance/$batch', '/healthzone/V2/Attendance/$batch', '/readyz-school/V3/LearnerIdentifiers'] // prettier-ignore
test.each([
  { file: 'nginx.conf', line: /location ~\* (\S+) \{ return 404; \}/, seen: nginxPath },
  {
    file: 'haproxy.cfg',
    line: /return status 404 if \{ path,url_dec,lower -m reg (\S+) \}/,
    seen: haproxyPath,
  },
])(
  'deploy/$file hides the operational paths from clients in every spelling',
  async ({ file, line, seen }) => {
    const pattern = await operationalPattern(file, line)
    expect(operational.filter((path) => !pattern.test(seen(path)))).toEqual([])
    expect(others.filter((path) => pattern.test(seen(path)))).toEqual([])
  },
)
