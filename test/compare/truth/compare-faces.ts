import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { openSides } from '../../../src/app/open-sides.ts'
import { resolveSides } from '../../../src/cli/target.ts'
import { systemClock } from '../../../src/clock.ts'
import { listLearners } from '../../../src/compare/run/queries.ts'
import { runComparison } from '../../../src/compare/run/run-comparison.ts'
import { createWindowSource } from '../../../src/compare/run/window-source.ts'
import { DAY_MS } from '../../../src/compare/run/windows.ts'
import { readEnvironment } from '../../../src/config/index.ts'
import type { CompareFaces } from './run-campaign.ts'

/** Compares both interfaces in this process as `markbridge compare run --v2 … --v3 …` does. */
export const compareFaces: CompareFaces = async ({ v2Url, v3Url }, run, learners) => {
  const folder = await mkdtemp(join(tmpdir(), 'markbridge-truth-'))
  const target = await resolveSides({ v2: new URL(v2Url), v3: new URL(v3Url) }, readEnvironment())
  const sides = openSides({ ...target, onCodesUnknown: () => undefined })
  try {
    const { document } = await runComparison(
      {
        source: createWindowSource({
          ...{ sides, rules: undefined, noise: run.noise, registrations: false },
          ...{ clock: systemClock, pauseMs: 0 },
          ...{ fromMs: Date.parse(run.from), toMs: Date.parse(run.to) + DAY_MS },
          learners: learners === undefined ? undefined : listLearners(learners),
        }),
        header: { kind: 'reads', partner: null, from: run.from, to: run.to, noise: run.noise },
        ...{ folder, clock: systemClock, onProgress: () => undefined },
      },
      new AbortController().signal,
    )
    return document
  } finally {
    await sides.close()
    await rm(folder, { recursive: true })
  }
}
