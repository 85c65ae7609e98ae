import { expect, it } from 'vitest'

import { describeStage, formatStages, viewKnown } from '../../src/cli/rollout/stage-view.ts'
import { parseConfig } from '../../src/config/index.ts'
import type { StageSetting } from '../../src/rollout/stage.ts'

const config = parseConfig({
  upstreams: { v2: { baseUrl: 'http://v2.example' }, v3: { baseUrl: 'http://v3.example' } },
  partners: [{ id: 'acme', match: { any: true }, stage: 'v3' }],
})
const first = (stage: StageSetting['stage']): StageSetting => ({ stage, percent: 0, always: [], never: [] })
const trail = { entries: 0, hash: '' }
const snapshot = (begins: ReadonlyMap<string, StageSetting>) => ({
  ...{ nowMs: 0, trail, partners: new Map(), begins },
  ...{ settled: new Set<string>(), liveInstances: [], acknowledgements: [] },
})

it.each(['legacy', 'complete'] as const)(
  'rollout ls shows that the stage in the file has no effect on a partner whose first stored stage was %s',
  (stage) => {
    const begun = viewKnown('acme', config, snapshot(new Map([['acme', first(stage)]])))
    expect(begun).toMatchObject({ setting: { stage }, source: 'file', ignored: 'v3' })
    expect(formatStages([describeStage(begun)])).toContain(
      `the first stage is ${stage}, and the stage v3 in the file has no effect`,
    )
    expect(viewKnown('acme', config, snapshot(new Map()))).toMatchObject({ setting: { stage: 'v3' } })
  },
)
