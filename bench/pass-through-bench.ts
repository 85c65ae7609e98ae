import { startChild } from './child.ts'
import { startNginx } from './nginx-peer.ts'
import { type Candidate, freePort, measure, type Measured, ofChild, ofNginx } from './proxy-candidate.ts'
import type { Row } from './report.ts'
import { interleave, median, medianRatio } from './rounds.ts'

const CLIENTS = 16
const ROUND_MS = 1_500
const ROUNDS = 6
/** The number of first rounds of each candidate that do not count, because V8 needs some 20,000 requests to compile the longest path. */
const WARM_UPS = 4
const AIM = 0.95
const TARGET = '/Learner/V3/LearnerGroups?$top=16'

const names = ['adapter', 'Express and undici', 'http-proxy-middleware', 'nginx'] as const
type Name = (typeof names)[number]

/**
 * Compares the adapter with proxies that only relay, for pages of 2 KB. The adapter also authorises, writes a log file, counts metrics
 * and rewrites links. The candidates take turns on one core. The clients and the service share the other core. The ratio compares the
 * processor time of a request, because other programs on the machine hardly change it.
 */
export async function benchPassThrough(): Promise<Row[]> {
  const upstream = await startChild('page-process.ts', [], 1)
  const upstreamPort = upstream.ready['port'] ?? 0
  const url = `http://127.0.0.1:${upstreamPort}`
  const children = {
    adapter: await startChild('adapter-process.ts', [url], 0),
    'Express and undici': await startChild('proxy-process.ts', ['undici', url], 0),
    'http-proxy-middleware': await startChild('proxy-process.ts', ['middleware', url], 0),
  }
  const nginx = await startNginx(upstreamPort, await freePort(), 0)
  const candidates = new Map<Name, Candidate>([
    ...Object.entries(children).map(([name, child]) => [name as Name, ofChild(child)] as const),
    ...(nginx === undefined ? [] : [['nginx', ofNginx(nginx)] as const]),
  ])
  const ports = [...candidates.values()].map(({ port }) => port)
  const load = await startChild('page-load-process.ts', [CLIENTS, ROUND_MS, TARGET, ...ports], 1)
  try {
    const present = names.filter((name) => candidates.has(name))
    const measureOne = (name: Name): Promise<Measured> => {
      const candidate = candidates.get(name)
      if (candidate === undefined) throw new Error(`no ${name}`)
      return measure(candidate, load)
    }
    await interleave(present, WARM_UPS - 1, measureOne)
    return toRows(await interleave(present, ROUNDS, measureOne))
  } finally {
    nginx?.stop()
    await Promise.all([upstream, load, ...Object.values(children)].map((child) => child.stop()))
  }
}

function toRows(all: ReadonlyMap<Name, readonly Measured[]>): Row[] {
  const cpu = (name: Name): number[] => (all.get(name) ?? []).map(({ cpuMicros }) => cpuMicros)
  return [...all].map(([name, measured]) => {
    const ratio = medianRatio(cpu(name), cpu('adapter'))
    const rate = median(measured.map(({ requestsPerSecond }) => requestsPerSecond)) / 1_000
    const isAim = name === 'http-proxy-middleware'
    return {
      bench: 'pass-through of 2 KB',
      candidate: name,
      value: `${median(cpu(name)).toFixed(0)} us a request, ${rate.toFixed(1)}k requests/s`,
      ratio: name === 'adapter' ? '' : `adapter ${ratio.toFixed(2)} of it`,
      aim: isAim ? `>= ${AIM}` : '',
      met: isAim ? ratio >= AIM : undefined,
    }
  })
}
