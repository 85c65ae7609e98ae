import { expect, it } from 'vitest'

import { describePartners } from '../../src/cli/rollout/describe-partner.ts'
import { parseConfig } from '../../src/config/index.ts'
import { openRolloutStore } from '../../src/rollout/store/rollout-store.ts'
import { makeFolder } from '../journal/open-sqlite.ts'
import { canary, changeTo, legacy, serve } from '../rollout/store/open-stores.ts'

const config = parseConfig({
  upstreams: { v2: { baseUrl: 'http://v2.example' }, v3: { baseUrl: 'http://v3.example' } },
  partners: [
    { id: 'acme', match: { any: true }, stage: 'legacy', canary: { percent: 2, always: ['first'] } },
  ],
})

it.each([
  [canary(20), { percent: 20, always: [], never: [] }],
  [
    { ...canary(20), stage: 'shadow' as const },
    { percent: 2, always: [], never: [] },
  ],
])(
  'describePartners returns the stored percentage at canary, and the percentage in the file at other stages: %j',
  async (at, expected) => {
    const url = `sqlite:${await makeFolder()}/journal.db`
    await (await serve(url)).store.apply(changeTo(at, { from: { ...legacy, stage: 'complete' } }), 'back')
    const store = await openRolloutStore({ url })
    const [found] = await describePartners(config, store, 'acme')
    expect(found).toMatchObject({
      document: { stage: at.stage, percent: at.stage === 'canary' ? 20 : 0 },
      canary: expected,
    })
    await store.close()
  },
)
