import { expect, test } from 'vitest'

import { checkLedger } from './check-ledger.ts'

function metrics(received: number, ...counts: number[]): string {
  const states = ['confirmed', 'refused', 'unknown', 'parked', 'open']
  const lines = counts.map(
    (n, at) => `markbridge_journal_records{partner="acme",state="${states[at] ?? ''}"} ${n}`,
  )
  return ['# HELP x', `markbridge_journal_received{partner="acme"} ${received}`, ...lines, ''].join('\n')
}

test.each([
  ['balances', metrics(10, 6, 1, 2, 1, 0), []],
  ['does not balance', metrics(10, 6, 1, 2, 0, 0), ['received 10, but the states add up to 9']],
  ['has records in flight', metrics(10, 6, 1, 2, 0, 1), ['1 records are still in flight']],
  ['is not there', 'markbridge_up 1\n', ['received NaN, but the states add up to NaN', 'NaN records are still in flight']],
])('a ledger that %s', (_name, text, faults) => {
  expect(checkLedger(text)).toEqual(faults.map((because) => ({ kind: 'ledger', of: 'acme', because })))
}) // prettier-ignore
