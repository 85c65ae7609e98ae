import { type Child, startChild } from './child.ts'
import { startNginx } from './nginx-peer.ts'
import { type Candidate, freePort, measure, type Measured, ofChild, ofNginx } from './proxy-candidate.ts'
import type { Row } from './report.ts'
import { interleave, median, medianRatio } from './rounds.ts'

const CLIENTS = 16
const ROUND_MS = 1_000
const ROUNDS = 6
/** The number of first rounds of each candidate that do not count, because V8 compiles in them. */
const WARM_UPS = 4
const ALONE_MS = 400
const AIM = 0.9
const TARGET =
  '/live/V2/Attendance/AttendanceRecords?$filter=Learner%20eq%2000000000-0000-4000-8000-000000000000'

const names = ['adapter', 'http-proxy-middleware', 'nginx', 'V2 itself'] as const
type Name = (typeof names)[number]

/**
 * Compares the adapter at stage `legacy` with proxies that only relay, for pages of 2 KB that V2 serves. The adapter also applies shares,
 * writes a log file, counts metrics and rewrites links. The candidates take turns on one core. The clients and V2 share the other core. The
 * ratio compares the processor time of a request. The added time is that of a single client, compared with requests to V2 itself.
 */
export async function benchRelay(): Promise<Row[]> {
  const v2 = await startChild('page-process.ts', [], 1)
  const port = v2.ready['port'] ?? 0
  const url = `http://127.0.0.1:${port}`
  const adapter = await startChild('adapter-process.ts', [url, 'none', url], 0)
  const middleware = await startChild('proxy-process.ts', ['middleware', url], 0)
  const nginx = await startNginx(port, await freePort(), 0)
  const candidates = new Map<Name, Candidate>([
    ['adapter', ofChild(adapter)],
    ['http-proxy-middleware', ofChild(middleware)],
    ...(nginx === undefined ? [] : [['nginx', ofNginx(nginx)] as const]),
    ['V2 itself', { port, cpuMs: async () => (await v2.ask('count'))['cpuMs'] ?? Number.NaN }],
  ])
  const ports = [...candidates.values()].map((candidate) => candidate.port)
  const load = await startChild('page-load-process.ts', [CLIENTS, ROUND_MS, TARGET, ...ports], 1)
  const alone = await startChild('page-load-process.ts', [1, ALONE_MS, TARGET, ...ports], 1)
  try {
    const measureBy =
      (source: Child) =>
      (name: Name): Promise<Measured> => {
        const candidate = candidates.get(name)
        if (candidate === undefined) throw new Error(`no ${name}`)
        return measure(candidate, source)
      }
    const proxies = names.filter((name) => candidates.has(name) && name !== 'V2 itself')
    await interleave(proxies, WARM_UPS - 1, measureBy(load))
    const busy = await interleave(proxies, ROUNDS, measureBy(load))
    return toRows(busy, await interleave([...proxies, 'V2 itself'], ROUNDS, measureBy(alone)))
  } finally {
    nginx?.stop()
    await Promise.all([v2, load, alone, adapter, middleware].map((child) => child.stop()))
  }
}

function toRows(
  busy: ReadonlyMap<Name, readonly Measured[]>,
  alone: ReadonlyMap<Name, readonly Measured[]>,
): Row[] {
  const rate = (name: Name): number[] => (busy.get(name) ?? []).map((one) => one.requestsPerSecond)
  const cpuOf = (name: Name): number[] => (busy.get(name) ?? []).map((one) => one.cpuMicros)
  const p50 = (name: Name): number => median((alone.get(name) ?? []).map(({ p50Ms }) => p50Ms))
  return [...busy.keys()].map((name) => {
    const ratio = medianRatio(cpuOf(name), cpuOf('adapter'))
    const cpu = median(cpuOf(name))
    const added = (p50(name) - p50('V2 itself')) * 1_000
    const isAim = name === 'http-proxy-middleware'
    return {
      bench: 'relay of 2 KB',
      candidate: name,
      value: `${(median(rate(name)) / 1_000).toFixed(1)}k requests/s, ${cpu.toFixed(0)} us a request, p50 +${added.toFixed(0)} us`,
      ratio: name === 'adapter' ? '' : `adapter ${ratio.toFixed(2)} of it`,
      aim: isAim ? `>= ${AIM}` : '',
      met: isAim ? ratio >= AIM : undefined,
    }
  })
}
