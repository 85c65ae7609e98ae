import { expect, it } from 'vitest'

import { runWithoutFault } from './no-fault.ts'

it('the guards raise no alarm in 1,000 long simulations without a fault', () => {
  let records = 0
  const alarms: unknown[] = []
  for (let seed = 1; seed <= 1_000; seed++) {
    const { state, v3Records } = runWithoutFault(seed, 3_000)
    records += v3Records
    if (state.kind === 'alarm') alarms.push({ seed, ...state })
  }
  console.log(`1,000 runs of 3,000 windows with ${records} records of V3: ${alarms.length} alarms`)
  expect(alarms).toEqual([])
}, 1_200_000)
