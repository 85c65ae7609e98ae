import { setTimeout as delay } from 'node:timers/promises'

import type { Finding } from './finding.ts'

/** The states of the journal (product contract 3), which always add up to the number of records received. */
const states = ['confirmed', 'refused', 'notApplied', 'unknown', 'parked', 'open'] as const

/**
 * Checks the ledger in the text of `/metrics` once every client has its answers: the states must add up to the records received, and no
 * record may be open.
 */
export function checkLedger(metrics: string): Finding[] {
  const read = (name: string, labels: string): number =>
    Number(new RegExp(`^${name}\\{partner="acme"${labels}\\} (\\S+)$`, 'm').exec(metrics)?.[1])
  const received = read('markbridge_journal_received', '')
  const counts = states.map((state) => read('markbridge_journal_records', `,state="${state}"`))
  const sum = counts.reduce((total, count) => total + count, 0)
  const open = counts[states.indexOf('open')] ?? Number.NaN
  const faults = [
    ...(received === sum ? [] : [`received ${received}, but the states add up to ${sum}`]),
    ...(open === 0 ? [] : [`${open} records are still in flight`]),
  ]
  return faults.map((because) => ({ kind: 'ledger', of: 'acme', because }))
}

/** Waits until the ledger of the adapter at `url` is correct, at most until `untilMs`. Returns the remaining faults. */
export async function untilBalanced(url: string, untilMs: number): Promise<readonly Finding[]> {
  for (;;) {
    const ledger = checkLedger(await (await fetch(`${url}/metrics`)).text())
    if (ledger.length === 0 || performance.now() > untilMs) return ledger
    await delay(200)
  }
}
