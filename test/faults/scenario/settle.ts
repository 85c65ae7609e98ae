import { setTimeout as delay } from 'node:timers/promises'

import type { Load } from '../load/load.ts'

/** Between two questions for final answers. */
const PAUSE_MS = 100

/** Has the clients finish what they are at and ask again until all is settled, at most until `untilMs`: then what is not final is a finding. */
export async function settle(load: Load, isSettled: () => Promise<boolean>, untilMs: number): Promise<void> {
  await load.stop()
  await load.sendOpen()
  while (!(await isSettled()) && performance.now() <= untilMs) {
    await delay(PAUSE_MS)
    await load.sendOpen()
  }
}
