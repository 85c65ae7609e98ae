import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { openSides } from '../../../src/app/open-sides.ts'
import { resolveSides } from '../../../src/cli/target.ts'
import { systemClock } from '../../../src/clock.ts'
import type { RunDocument } from '../../../src/compare/run-document.ts'
import { listLearners } from '../../../src/compare/run/queries.ts'
import { runComparison } from '../../../src/compare/run/run-comparison.ts'
import { type Checkpoint, openRunFiles } from '../../../src/compare/run/run-files.ts'
import { createWindowSource } from '../../../src/compare/run/window-source.ts'
import { DAY_MS } from '../../../src/compare/run/windows.ts'
import { readEnvironment } from '../../../src/config/index.ts'
import type { CompareFaces } from './run-campaign.ts'

/**
 * Compares both interfaces in this process as `markbridge compare run --v2 … --v3 …` does, and resumes an interrupted run as `--resume`
 * does.
 */
export const compareFaces: CompareFaces = async ({ v2Url, v3Url }, run, learners) => {
  const folder = await mkdtemp(join(tmpdir(), 'markbridge-truth-'))
  const target = await resolveSides({ v2: new URL(v2Url), v3: new URL(v3Url) }, readEnvironment())
  const sides = openSides({ ...target, onCodesUnknown: () => undefined })
  const files = openRunFiles(folder)
  const go = async (resumed: Checkpoint | undefined): Promise<RunDocument> => {
    const stop = new AbortController()
    let before: number | undefined
    const { document } = await runComparison(
      {
        source: createWindowSource({
          ...{ sides, rules: undefined, resumed, noise: run.noise, registrations: false },
          ...{ clock: systemClock, pauseMs: 0 },
          ...{ fromMs: Date.parse(run.from), toMs: Date.parse(run.to) + DAY_MS },
          learners: learners === undefined ? undefined : listLearners(learners),
        }),
        header: { kind: 'reads', partner: null, from: run.from, to: run.to, noise: run.noise },
        checkpoint: { options: '', resumed },
        ...{ files, clock: systemClock },
        onProgress: ({ done, total }) => {
          before ??= done
          if (run.interrupted && done > before && done < total) stop.abort(new Error('interrupted'))
        },
      },
      stop.signal,
    )
    if (document.complete || !stop.signal.aborted) return document
    const checkpoint = await files.readCheckpoint(undefined)
    return checkpoint === undefined ? document : go(checkpoint)
  }
  try {
    return await go(undefined)
  } finally {
    await sides.close()
    await rm(folder, { recursive: true })
  }
}
