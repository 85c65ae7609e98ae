import { expect, it } from 'vitest'

import { errorRules } from '../../../src/errors.ts'
import { remedies } from '../../../src/v2/inspect/remedies.ts'

it('has a remedy for every error that a batch file or its request can have', () => {
  // These come of other requests, or of the exchange.
  const others = ['ADP_FORBIDDEN', 'ADP_NOT_ACCEPTABLE', 'ADP_QUERY', 'ADP_SLOW_CLIENT']
  const needed = Object.entries(errorRules)
    .filter(([code, rule]) => (rule.class === 'request' || rule.class === 'record') && !others.includes(code))
    .map(([code]) => code)
  expect(Object.keys(remedies).sort()).toEqual(needed.sort())
})
