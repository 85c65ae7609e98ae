import { setTimeout as delay } from 'node:timers/promises'

import type { Checked, Finding } from '../check/check-history.ts'
import { checkLedger } from '../check/check-ledger.ts'
import { isFinal, type WriteHistory } from '../load/history.ts'
import type { Load } from '../load/load.ts'

/** How the end of the faults was outlived. */
export interface Settlement {
  /** Until every record was final, for its client and in the journal; longer than allowed where one was not. */
  readonly settledMs: number
  /** What is wrong with the journal's totals then. */
  readonly ledger: readonly Finding[]
}

/** Between two questions for final answers. */
const PAUSE_MS = 200

/**
 * Has the clients finish what they are at and ask again until all is final. `metricsUrl`: where the journal's totals are, if
 * there is a journal. Gives up after `withinMs`: what is not final then is a finding of the check.
 */
export async function settle(
  load: Load,
  check: () => Promise<Checked>,
  metricsUrl: string | undefined,
  withinMs: number,
): Promise<Settlement> {
  const startedMs = performance.now()
  const takenMs = (): number => performance.now() - startedMs
  const isSettled = async (): Promise<boolean> => {
    const waiting = load.history().writes.filter((own) => !isFinal(own) && own.isAbandoned !== true)
    if (waiting.length === 0) return true
    // What everybody is told unknown of may have been overtaken: the check knows, but it takes long.
    if (!waiting.every(wasToldUnknown)) return false
    return (await check()).findings.every(({ kind }) => kind !== 'unsettled')
  }
  await load.stop()
  await load.sendOpen()
  while (!(await isSettled()) && takenMs() <= withinMs) {
    await delay(PAUSE_MS)
    await load.sendOpen()
  }
  for (;;) {
    const ledger = metricsUrl === undefined ? [] : checkLedger(await readText(metricsUrl))
    if (ledger.length === 0 || takenMs() > withinMs) return { settledMs: takenMs(), ledger }
    await delay(PAUSE_MS)
  }
}

function wasToldUnknown({ answers }: WriteHistory): boolean {
  return answers.at(-1)?.answer.kind === 'unknown'
}

async function readText(url: string): Promise<string> {
  return (await fetch(url)).text()
}
