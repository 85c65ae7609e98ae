import { setTimeout as delay } from 'node:timers/promises'

import type { Random } from '../../../src/sandbox/random.ts'

/** What the service does in a storm, as `PUT /_sandbox/faults` takes it (docs/sandbox.md). */
export type SandboxFault = Readonly<Record<string, unknown>> & { readonly kind: string }

const posts = { method: 'POST', path: 'AttendanceRecords' }
const reads = { method: 'GET', path: 'AttendanceRecords' }

/** Storms by name; each draws how hard it is. */
const storms = {
  tooMany: (random: Random) => [
    { ...posts, kind: 'rateLimit', retryAfterSeconds: random.below(2), probability: 0.3 + random.next() / 2 },
  ],
  unavailable: (random: Random) => [
    { ...posts, kind: 'status', status: 503, probability: 0.3 + random.next() / 2, ...retryAfter(random) },
    { ...reads, kind: 'status', status: 503, probability: 0.3 },
  ],
  failing: (random: Random) => [
    { ...posts, kind: 'status', status: 500 + random.below(3), probability: 0.3 },
    { ...reads, kind: 'status', status: 500, probability: 0.3 },
  ],
  resetBefore: () => [
    { ...posts, kind: 'reset', apply: false, probability: 0.3 },
    { ...reads, kind: 'reset', apply: false, probability: 0.2 },
  ],
  resetAfter: () => [{ ...posts, kind: 'reset', apply: true, probability: 0.3 }],
  truncated: (random: Random) => [
    { ...posts, kind: 'truncate', bytes: random.below(400), probability: 0.3 },
    { ...reads, kind: 'truncate', bytes: random.below(400), probability: 0.2 },
  ],
  silent: (random: Random) => [{ ...posts, kind: 'stall', apply: random.chance(0.5), probability: 0.05 }],
  unreadable: () => [{ ...posts, kind: 'brokenGzip', probability: 0.3 }],
  /** Reads that know nothing of what was written since, and answers that are lost, so that it must be looked for. */
  stale: (random: Random) => [
    { ...reads, kind: 'staleRead' },
    { ...posts, kind: 'latency', ms: random.below(300) },
    { ...posts, kind: 'reset', apply: true, probability: 0.4 },
  ],
  late: (random: Random) => [
    { ...posts, kind: 'latency', ms: 100 + random.below(400) },
    { ...reads, kind: 'latency', ms: random.below(300) },
  ],
  slow: (random: Random) => [
    { ...posts, kind: 'latency', ms: random.below(100) },
    { ...posts, kind: 'slowBody', bytesPerSecond: 2_000, probability: 0.3 },
  ],
} satisfies Record<string, (random: Random) => SandboxFault[]>

export type StormName = keyof typeof storms

/** Every storm. */
export const stormNames = Object.keys(storms) as StormName[]

/** A storm and the calm after it last at most so long. */
const MAX_STORM_MS = 1_000
/** Stale reads must end before the adapter gives up to look (`readBackAfterMs`): nothing could find a write otherwise. */
const MAX_STALE_MS = 400

/** Sets storms, one after another, until it is stopped; then the service is sound again. */
export interface StormDriver {
  count(): number
  stop(): Promise<void>
}

/** Starts to set storms of these names in the sandbox at `url`. */
export function startStorms(url: string, names: readonly StormName[], random: Random): StormDriver {
  const stopping = new AbortController()
  let count = 0
  const { signal } = stopping
  const last = (maxMs: number): Promise<void> =>
    delay(random.below(maxMs), undefined, { signal }).catch(() => undefined)
  const run = async (): Promise<void> => {
    while (!signal.aborted) {
      const name = names[random.below(names.length)]
      if (name === undefined) return
      await setFaults(url, storms[name](random))
      count += 1
      await last(name === 'stale' ? MAX_STALE_MS : MAX_STORM_MS)
      await setFaults(url, [])
      await last(MAX_STORM_MS)
    }
  }
  const running = run()
  return {
    count: () => count,
    stop: async () => {
      stopping.abort()
      await running
      await setFaults(url, [])
    },
  }
}

/** Makes writes of V2 slow, one more than the other; `url` is its own port, which has faults of its own. */
export async function slowV2(url: string, ms: number): Promise<void> {
  const slow = { method: 'POST', kind: 'latency', ms: ms / 2 }
  await setFaults(url, [slow, { ...slow, probability: 0.5 }])
}

async function setFaults(url: string, faults: readonly SandboxFault[]): Promise<void> {
  const reply = await fetch(`${url}/_sandbox/faults`, {
    method: 'PUT',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(faults),
  })
  const text = await reply.text()
  if (!reply.ok) throw new Error(`the sandbox takes no such faults: ${text}`)
}

function retryAfter(random: Random): { headers?: Record<string, string> } {
  return random.chance(0.5) ? { headers: { 'Retry-After': String(random.below(2)) } } : {}
}
