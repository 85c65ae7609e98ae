import type { Random } from '../../../src/sandbox/random.ts'
import { disturb, type Disturbance } from '../disturb.ts'

/** The behaviour of the service in a storm, in the form of `PUT /_sandbox/faults` (docs/sandbox.md). */
type SandboxFault = Readonly<Record<string, unknown>> & { readonly kind: string }

const posts = { method: 'POST', path: 'AttendanceRecords' }
const reads = { method: 'GET', path: 'AttendanceRecords' }

/** Storms by name. Each storm draws its intensity. */
const storms = {
  tooMany: (random: Random) => [
    { ...posts, kind: 'rateLimit', retryAfterSeconds: random.below(2), probability: 0.3 + random.next() / 2 },
  ],
  unavailable: (random: Random) => [
    { ...posts, kind: 'status', status: 503, probability: 0.3 + random.next() / 2, ...retryAfter(random) },
    { ...reads, kind: 'status', status: 503, probability: 0.3 },
  ],
  failing: (random: Random) => [
    { ...posts, kind: 'status', status: random.pick([500, 502, 504]), probability: 0.3 },
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
  /** Reads miss recent writes, and answers are lost, so that the adapter must read back. */
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

export const stormNames = Object.keys(storms) as StormName[]

/** The longest duration of a storm and of the calm after it. */
const MAX_STORM_MS = 1_000
/** Stale reads must end before the adapter stops reading back (`readBackAfterMs`), because no read could find the write otherwise. */
const MAX_STALE_MS = 400

/**
 * Sets storms of these names in the sandbox at `url`, one after another, until `stop` is called. `stop` leaves the service without faults.
 */
export function startStorms(url: string, names: readonly StormName[], random: Random): Disturbance {
  return disturb(
    () => random.below(MAX_STORM_MS),
    async (wait) => {
      const name = names[random.below(names.length)]
      if (name === undefined) return false
      await control(url, 'faults', storms[name](random))
      await wait(random.below(name === 'stale' ? MAX_STALE_MS : MAX_STORM_MS))
      await control(url, 'faults', [])
      return true
    },
  )
}

/** Sets the control `PUT /_sandbox/<name>` of the sandbox at `url` (docs/sandbox.md). */
export async function control(url: string, name: 'faults' | 'values', body: object): Promise<void> {
  const reply = await fetch(`${url}/_sandbox/${name}`, {
    method: 'PUT',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(body),
  })
  const text = await reply.text()
  if (!reply.ok) throw new Error(`the sandbox rejected the ${name}: ${text}`)
}

function retryAfter(random: Random): { headers?: Record<string, string> } {
  return random.chance(0.5) ? { headers: { 'Retry-After': String(random.below(2)) } } : {}
}
