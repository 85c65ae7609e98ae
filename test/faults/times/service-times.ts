import type { Random } from '../../../src/sandbox/random.ts'
import { disturb } from '../disturb.ts'
import { control } from '../scenario/storms.ts'

/** How a service dates marks. */
interface Dating {
  /** The source of a mark's time: its client, or the service. Marks of V2 always have the service's time. */
  readonly clock: 'client' | 'server'
  /** How far the service's clock is ahead. */
  readonly offsetMs: number
  /** The time zone offset that is added to the times of clients. */
  readonly zoneMs: number
  readonly times: 'keep' | 'seconds' | 'roundSeconds' | 'sqlDatetime' | 'minutes' | 'roundMinutes'
}

/** A service whose clock, zone, precision and rounding change until it is stopped. Afterwards they stay as they are. */
export interface ServiceTimes {
  /** The changes, each with its position in the sequence of the run. */
  readonly story: readonly string[]
  /** Converts the times of the marks in a request to V3 to the time zone of the service. */
  readonly rewrite: (request: Buffer) => Buffer
  stop(): Promise<void>
}

const HOUR_MS = 3_600_000
const MIN_GAP_MS = 60
const MAX_GAP_MS = 400

const recordedOn = /("RecordedOn":")(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)/g

const changes: readonly ((now: Dating, random: Random) => Partial<Dating>)[] = [
  // The service's clock is stepped, or set right if it was stepped before.
  ({ offsetMs }, random) => ({
    offsetMs:
      offsetMs !== 0 && random.chance(0.7)
        ? 0
        : random.pick([2 * HOUR_MS, -2 * HOUR_MS, 3_000, -3_000, 90_000]),
  }),
  // Daylight saving time begins or ends.
  ({ offsetMs, zoneMs }) =>
    zoneMs === 0
      ? { zoneMs: HOUR_MS, offsetMs: offsetMs + HOUR_MS }
      : { zoneMs: 0, offsetMs: offsetMs - HOUR_MS },
  (_now, random) => ({
    times: random.pick(['keep', 'seconds', 'roundSeconds', 'sqlDatetime', 'minutes', 'roundMinutes']),
  }),
  ({ clock }) => ({ clock: clock === 'server' ? 'client' : 'server' }),
]

/** Starts to change how the sandbox at `url` dates marks. */
export async function startServiceTimes(
  url: string,
  random: Random,
  tick: () => number,
): Promise<ServiceTimes> {
  const story: string[] = []
  let now: Dating = { clock: 'client', offsetMs: 0, zoneMs: 0, times: 'keep' }
  const change = async (): Promise<void> => {
    now = { ...now, ...random.pick([...changes] as [(typeof changes)[number]])(now, random) }
    const { clock, offsetMs, times } = now
    await control(url, 'values', { clock, offsetMs, times })
    story.push(
      `${tick()} ${now.clock} clock ${now.offsetMs / 1_000} s, zone ${now.zoneMs / HOUR_MS} h, ${now.times}`,
    )
  }
  for (let count = random.below(4); count > 0; count -= 1) await change()
  const going = disturb(() => MIN_GAP_MS + random.below(MAX_GAP_MS), change)
  return {
    story,
    rewrite: (request) => {
      if (now.zoneMs === 0) return request
      const text = request.toString('latin1')
      const dated = text.replace(
        recordedOn,
        (_whole, name: string, time: string) => name + new Date(Date.parse(time) + now.zoneMs).toISOString(),
      )
      return Buffer.from(dated, 'latin1')
    },
    stop: () => going.stop(),
  }
}
