import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { parseArgs } from 'node:util'

import { Client } from 'pg'
import { numberOption } from '../support/number-option.ts'
import { Pool } from 'undici'

import { createRandom, type Random } from '../../src/sandbox/random.ts'
import { startCli } from '../cli/run-cli.ts'
import type { Samples } from '../faults/load/write.ts'
import { batchOf, batchPath, guid } from '../support/batch-request.ts'
import { startPostgres } from '../support/start-postgres.ts'
import { growthMiB } from '../walls/fuzz/check-run.ts'
import { drawChart, type Series } from './draw-chart.ts'
import { type Heaps, readHeaps } from './read-heaps.ts'

/**
 * `npm run test:soak` runs the adapter under load for `--minutes n`, with a compared partner at `shadow`, a partner at `v3` whose marks are
 * checked on V2, and an encrypted journal in `--journal sqlite|postgres`. The adapter has the environment of `deploy/`. A chart of memory,
 * descriptors, journal size and latency goes to `--out`. The exit status is 1 if live memory, resident memory or descriptors keep growing,
 * if resident memory exceeds the limit of the container in `deploy/`, or if any request or the log has an error.
 */
const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '60' },
    journal: { type: 'string', default: 'sqlite' },
    rate: { type: 'string', default: '10' },
    seed: { type: 'string', default: '1' },
    out: { type: 'string', default: 'soak.svg' },
  },
})
const minutes = numberOption('minutes', values.minutes)
const rate = numberOption('rate', values.rate)
const seed = numberOption('seed', values.seed)
/**
 * The allowed growth from the highest value of the first third of the run to the lowest value of the last third. Live memory varies with
 * the queue of background work. Resident memory grows in the first minutes, while the allocator fills its free lists, so a short run allows
 * more growth.
 */
const [GROWTH_LIVE_MIB, GROWTH_RESIDENT_MIB, GROWTH_DESCRIPTORS] = [16, minutes < 15 ? 256 : 64, 16]
/**
 * Only each tenth point of the chart has a new reading of the heaps, because each reading collects garbage, which lowers resident memory
 * for a minute.
 */
const HEAPS_EVERY = 10
const [POINTS, CLIENTS, MAX_RECORDS] = [90, 8, 30]
const KEY = '0c'.repeat(32)
const headers = { 'Ocp-Apim-Subscription-Key': 'sandbox', Authorization: 'bearer sandbox' }
const partners = ['shadow', 'v3']
const PARTNER = 'X-Partner'

/** The measurements of one moment, with the latest reading of the heaps. */
interface Point extends Heaps {
  readonly residentMiB: number
  readonly descriptors: number
  readonly journalMiB: number
  readonly p50Ms: number
  readonly p99Ms: number
}

const folder = await mkdtemp(join(tmpdir(), 'markbridge-soak-'))
const postgres = values.journal === 'postgres' ? await startPostgres() : undefined
const journal = (await postgres?.createDatabase()) ?? `sqlite:${join(folder, 'journal.db')}`
const service = startCli(['sandbox', '--port', '0', '--v2-port', '0'])
const [v3 = '', v2 = ''] = (await service.until(/v2 ready \S+\n/)).match(/http:\S+/g) ?? []
const config = join(folder, 'markbridge.yaml')
await writeFile(config, JSON.stringify(settings()))
const deployed = await readDeployed()
const adapter = startCli(['serve', '--config', config, '--port', '0'], {
  ...deployed.environment,
  NODE_OPTIONS: `${deployed.environment['NODE_OPTIONS'] ?? ''} --expose-gc --inspect=127.0.0.1:0`,
  MARKBRIDGE_LOG_LEVEL: 'error',
  SOAK_KEY: KEY,
})
const inspector = /ws:\S+/.exec(await adapter.untilErrors(/ws:\S+\n/))?.[0] ?? ''
const url = /http:\S+/.exec(await adapter.until(/ready \S+\n/))?.[0] ?? ''

/** Returns the environment of the systemd unit and the memory limit of the container in `deploy/`. */
async function readDeployed() {
  const [unit, container] = await Promise.all(
    ['markbridge.service', 'kubernetes.yaml'].map((file) => readFile(`deploy/${file}`, 'utf8')),
  )
  const [, pairs = ''] = /^Environment=(.*)$/m.exec(unit ?? '') ?? []
  const [, limit] = /limits: \{ memory: (\d+)Mi \}/.exec(container ?? '') ?? []
  const environment = Object.fromEntries(
    pairs.split(' ').map((pair) => /^(.*?)=(.*)$/.exec(pair)?.slice(1) as [string, string]),
  )
  return { environment, limitMiB: Number(limit) }
}

function settings(): object {
  const key = { env: 'SOAK_KEY' }
  const own = (id: string) => ({ id, match: { header: { name: PARTNER, value: id } }, stage: id })
  return {
    upstreams: { v3: { baseUrl: v3 }, v2: { baseUrl: v2 } },
    journal: { url: journal, keys: [{ id: 'k1', key }], ...(postgres && { stateDir: folder }) },
    partners: [
      { ...own('shadow'), compare: { settleMs: '2s' } },
      { ...own('v3'), check: { v2: 50 } },
    ],
  }
}

const faults: string[] = []
let latencies: number[] = []
let marks = 0

/** Posts batches, some of them twice, and reads at a constant rate until the time is over. */
async function work(number: number, samples: Samples, untilMs: number): Promise<void> {
  const random = createRandom(seed, `client ${number}`)
  const pool = new Pool(url, { connections: 1 })
  const own = { ...headers, [PARTNER]: partners[number % partners.length] }
  const send = async (method: 'GET' | 'POST', path: string, body?: ReturnType<typeof batchOf>) => {
    const began = performance.now()
    const reply = await pool.request({
      ...{ method, path, body: body?.body ?? null },
      headers: { ...own, ...body?.headers },
    })
    const text = await reply.body.text()
    if (reply.statusCode !== 200) faults.push(`${method} ${reply.statusCode} ${text.slice(0, 120)}`)
    latencies.push(performance.now() - began)
  }
  for (let count = 0; performance.now() < untilMs; count += 1) {
    const next = delay((CLIENTS / rate) * 1_000)
    const batch = drawBatch(random, samples, guid(seed * 1_000_000_000 + number * 10_000_000 + count))
    marks += batch.records
    await send('POST', batchPath, batch)
    if (random.chance(0.05)) await send('POST', batchPath, batch)
    if (random.chance(0.2)) await send('GET', readPath(random, samples))
    if (random.chance(0.1)) await send('GET', '/Attendance/V3/$metadata')
    await next
  }
  await pool.close()
}

function drawBatch(random: Random, { learners, events, codes }: Samples, id: string) {
  const records = Array.from({ length: 1 + random.below(MAX_RECORDS) }, () => ({
    Present: true,
    Absent: false,
    Learner: draw(random, learners),
    AttendableEvent: draw(random, events),
    SchoolAttendanceCode: draw(random, codes)?.id,
    MinutesLate: null,
    Comment: random.chance(0.2) ? 'synthetic' : null,
  }))
  return {
    ...batchOf(records, { batch: `batch_${id}`, changeset: `changeset_${id}` }),
    records: records.length,
  }
}

const draw = <Item>(random: Random, items: readonly Item[]): Item | undefined =>
  items[random.below(items.length)]

const readPath = (random: Random, { learners }: Samples): string =>
  `${batchPath.replace('$batch', 'AttendanceRecords')}?$filter=${encodeURIComponent(`Learner eq ${draw(random, learners)}`)}`

async function measure(last: Point | undefined): Promise<Point> {
  const process = `/proc/${adapter.pid ?? 0}`
  const rss = /VmRSS:\s+(\d+) kB/.exec(await readFile(`${process}/status`, 'utf8'))?.[1]
  const sorted = latencies.sort((one, other) => one - other)
  latencies = []
  const at = (share: number): number => sorted[Math.floor(sorted.length * share)] ?? 0
  const { committedMiB, liveMiB } =
    last === undefined || points.length % HEAPS_EVERY === HEAPS_EVERY - 1 ? await readHeaps(inspector) : last
  return {
    residentMiB: Number(rss) / 1_024,
    ...{ committedMiB, liveMiB },
    descriptors: (await readdir(`${process}/fd`)).length,
    journalMiB: (await journalBytes()) / 1_048_576,
    p50Ms: at(0.5),
    p99Ms: at(0.99),
  }
}

async function journalBytes(): Promise<number> {
  if (postgres === undefined) {
    const sizes = ['', '-wal'].map((end) => stat(join(folder, `journal.db${end}`)).then(({ size }) => size))
    return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0)
  }
  const client = new Client({ connectionString: journal })
  await client.connect()
  const { rows } = await client.query<{ size: number }>('select pg_database_size(current_database())::float8 as size') // prettier-ignore
  await client.end()
  return rows[0]?.size ?? 0
}

const points: Point[] = []
const samples = (await (await fetch(`${v3}/_sandbox/samples`)).json()) as Samples
const untilMs = performance.now() + minutes * 60_000
const clients = Array.from({ length: CLIENTS }, (_, number) => work(number, samples, untilMs))
const everyMs = (minutes * 60_000) / POINTS
while (performance.now() < untilMs - everyMs / 2) {
  await delay(everyMs)
  const point = await measure(points.at(-1))
  points.push(point)
  if (points.length % HEAPS_EVERY === 0)
    console.log(
      Object.entries(point)
        .map(([name, value]) => `${name} ${(value as number).toFixed(1)}`)
        .join('  '),
    )
}
await Promise.all(clients)
const growth = (name: keyof Point): number => growthMiB(points.map((point) => point[name]))
const series = (name: string, unit: string, ...members: (keyof Point)[]): Series => ({
  title: `${name}, ${unit}`,
  lines: members.map((member) => points.map((point) => point[member])),
})
await writeFile(
  values.out,
  drawChart(`${marks} marks in ${minutes} min, ${values.journal}`, minutes, [
    series('Memory', 'MiB (resident, heaps with their buffers, in use after a collection)', 'residentMiB', 'committedMiB', 'liveMiB'), // prettier-ignore
    series('Descriptors', 'open', 'descriptors'),
    series('Journal', 'MiB', 'journalMiB'),
    series('Latency', 'ms (median, 99 %)', 'p50Ms', 'p99Ms'),
  ]),
)
const status = await adapter.stop()
const errors = adapter
  .errors()
  .split('\n')
  .filter((line) => line.includes('"level":50'))
await service.stop()
await postgres?.close()
await rm(folder, { recursive: true })

const highestMiB = Math.max(...points.map(({ residentMiB }) => residentMiB))
const isBounded =
  growth('liveMiB') <= GROWTH_LIVE_MIB &&
  growth('residentMiB') <= GROWTH_RESIDENT_MIB &&
  highestMiB <= deployed.limitMiB &&
  growth('descriptors') <= GROWTH_DESCRIPTORS
const isSound = faults.length + errors.length === 0 && status === 0 && isBounded
for (const line of [...faults.slice(0, 10), ...errors.slice(0, 10)]) console.log(line)
console.log(
  `${isSound ? 'sound' : 'NOT SOUND'}: ${marks} marks, ${faults.length} faults, ${errors.length} errors in the log, exit ${status ?? '-'}; ` +
    `memory in use grew by ${growth('liveMiB').toFixed(1)} MiB, resident memory by ${growth('residentMiB').toFixed(1)} MiB ` +
    `to at most ${highestMiB.toFixed(0)} of ${deployed.limitMiB} MiB, descriptors by ${growth('descriptors')}; the chart is in ${values.out}`,
)
process.exitCode = isSound ? 0 : 1
