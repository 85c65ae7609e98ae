import { setTimeout as delay } from 'node:timers/promises'

import type { Load } from '../load/load.ts'

/** The time between two requests for final answers. */
const PAUSE_MS = 100

/** Lets the clients finish their work and resend until all writes are final, at most until `untilMs`. */
export async function settle(load: Load, isSettled: () => Promise<boolean>, untilMs: number): Promise<void> {
  await load.stop()
  await load.sendOpen()
  while (!(await isSettled()) && performance.now() <= untilMs) {
    await delay(PAUSE_MS)
    await load.sendOpen()
  }
}
