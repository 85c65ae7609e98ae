import { expect, it } from 'vitest'

import { runUpstreams } from './upstreams/run-upstreams.ts'

it('the adapter survives malformed and unexpected replies of V2 and V3, and reports no false outcome', async () => {
  const { findings, internalErrors, unbalanced, status, claims, calls } = await runUpstreams({
    seed: 1,
    exchanges: 2_000,
    concurrency: 64,
  })
  expect({ findings, internalErrors, unbalanced, status }).toEqual({
    findings: [],
    internalErrors: [],
    unbalanced: [],
    status: 0,
  })
  // The run must have made every kind of call, and clients must have got each kind of outcome. Otherwise it tests too little.
  expect(Object.keys(claims).sort()).toEqual(['applied', 'notApplied', 'unknown'])
  for (const endpoint of ['V2 read', 'V2 write', 'batch', 'JSON batch', 'record', 'read', 'change', 'token'])
    expect(calls[endpoint]).toBeGreaterThan(10)
})
