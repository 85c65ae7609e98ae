import { createRandom } from '../../../src/sandbox/random.ts'
import { descendantsOf, type Pauses, type PauseTarget, startPauses } from '../pauses/pauses.ts'
import type { Scenario } from './scenario.ts'
import type { Instances } from './start-instances.ts'

/** A pause lasts between so many leases. */
const USUAL_LEASES = [0.2, 5] as const
/** Service and store must not outlast what an adapter waits for them. */
const MAX_OTHERS_MS = 1_200
const USUAL_LEASE_MS = 10_000

/** Starts the pauses of a scenario, if it has any: of adapters, of workers and their parent, of the service and the store. */
export function pauseProcesses(
  { pauses, workers = 1, leaseMs = USUAL_LEASE_MS }: Scenario,
  { supervisors, postgres }: Instances,
  service: number,
  seed: number,
): Pauses | undefined {
  if (pauses === undefined) return undefined
  const adapters = supervisors.flatMap((supervisor): PauseTarget[] => {
    const pid = (): number => supervisor.pid()
    const worker = (number: number): PauseTarget => ({
      pids: () => descendantsOf(pid()).slice(number, number + 1),
    })
    const all: PauseTarget = { pids: () => [pid(), ...descendantsOf(pid())] }
    if (workers === 1) return [all]
    return [all, { pids: () => [pid()] }, ...Array.from({ length: workers }, (_, number) => worker(number))]
  })
  const [least, most] = pauses.leases ?? USUAL_LEASES
  const server = postgres?.server
  const store = (): number[] => {
    const pid = server?.pid()
    return pid === undefined ? [] : [pid, ...descendantsOf(pid)]
  }
  const others: PauseTarget[] = [
    { pids: () => [service], maxMs: MAX_OTHERS_MS },
    ...(server === undefined ? [] : [{ pids: store, maxMs: MAX_OTHERS_MS }]),
  ]
  return startPauses({
    random: createRandom(seed, 'pauses'),
    targets: pauses.others === true ? [...adapters, ...others] : adapters,
    lanes: pauses.lanes,
    lastMs: [least * leaseMs, most * leaseMs],
    gapMs: pauses.gapMs,
  })
}
