import { expect, it } from 'vitest'

import { findHidden } from '../../src/config/find-hidden.ts'

it('finds the hidden ones of thousands of partners in one pass', () => {
  const matches = Array.from({ length: 40_000 }, (_, index) => {
    const kinds = [
      { subscriptionKeySha256: index.toString(16).padStart(64, '0') },
      { header: { name: 'X-Partner', value: `p${index}` } },
      { pathPrefix: `/area-${index % 7}/partner-${index}` },
    ]
    return kinds[index % kinds.length] ?? {}
  })
  const last = [{ pathPrefix: '/AREA-2/partner-2/V2' }, { header: { name: 'x-partner', value: 'p1' } }]
  expect(findHidden([...matches, ...last])).toEqual([
    { index: 40_000, message: 'no request reaches this partner: partners[2] matches first' },
    { index: 40_001, message: 'no request reaches this partner: partners[1] matches first' },
  ])
})
