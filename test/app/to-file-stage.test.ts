import { expect, it } from 'vitest'

import { toFileStage } from '../../src/app/partners.ts'
import { parseConfig } from '../../src/config/index.ts'

const upstreams = { v3: { baseUrl: 'http://v3.test' }, v2: { baseUrl: 'http://v2.test' } }
const canary = { percent: 5, always: ['a'], never: ['b'] }

it.each([
  ['one', 'canary'],
  ['two', 'legacy'],
])('with the approval of %s a partner of the file begins at %s', (approval, stage) => {
  const partner = { id: 'acme', match: { any: true }, stage: 'canary', stageOverride: 'shadow', canary }
  const { partners, rollout } = parseConfig({ upstreams, rollout: { approval }, partners: [partner] })
  expect(partners.map((own) => toFileStage(own, rollout))).toEqual([
    { stage, override: 'shadow', percent: 5, always: ['a'], never: ['b'] },
  ])
})
