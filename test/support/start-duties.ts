import { createHeartbeat, type Duty } from '../../src/heartbeat.ts'
import { createManualClock, type ManualClock } from './manual-clock.ts'

/** Starts duties on a heartbeat. `failures` holds the duty and the code of each reported failure. */
export function startDuties(
  duties: readonly Duty[],
  clock: Pick<ManualClock, 'after'> = createManualClock(),
): { readonly failures: string[]; readonly stop: () => Promise<void> } {
  const failures: string[] = []
  const heartbeat = createHeartbeat(clock, ({ work, code }) => failures.push(`${work}: ${code}`))
  heartbeat.add(...duties)
  return { failures, stop: heartbeat.stop }
}
