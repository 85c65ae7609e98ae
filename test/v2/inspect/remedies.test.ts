import { expect, it } from 'vitest'

import { errorRules } from '../../../src/errors.ts'
import { remedies } from '../../../src/v2/inspect/remedies.ts'

it('has a remedy for every error that a batch file can have', () => {
  // These are of the exchange, not of the file.
  const others = ['ADP_CONTENT_ENCODING', 'ADP_BODY', 'ADP_HOST', 'ADP_PATH', 'ADP_METHOD_NOT_ALLOWED', 'ADP_NOT_FOUND', 'ADP_SUBSCRIPTION_KEY', 'ADP_TOKEN', 'ADP_FORBIDDEN', 'ADP_QUERY', 'ADP_SLOW_CLIENT'] // prettier-ignore
  const needed = Object.entries(errorRules)
    .filter(([code, rule]) => (rule.class === 'request' || rule.class === 'record') && !others.includes(code))
    .map(([code]) => code)
  expect(Object.keys(remedies).sort()).toEqual(needed.sort())
})
