import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { openSides } from '../../../src/app/compare/open-sides.ts'
import { openTarget } from '../../../src/cli/comparing/run-target.ts'
import { systemClock } from '../../../src/clock.ts'
import { readEnvironment } from '../../../src/config/index.ts'
import type { RunDocument } from '../../../src/compare/run-document.ts'
import { createOwnRules } from '../../../src/compare/diff/index.ts'
import {
  type Checkpoint,
  DAY_MS,
  listLearners,
  openRunFiles,
  readCheckpoint,
  runReads,
} from '../../../src/compare/run/index.ts'
import { partnerRules, today } from './partner-rules.ts'
import type { CompareFaces } from './run-campaign.ts'

/** Compares as `markbridge compare run --v2 … --v3 …` does, in this process; `--resume` where the run is interrupted. */
export const compareFaces: CompareFaces = async ({ v2Url, v3Url }, run, learners) => {
  const folder = await mkdtemp(join(tmpdir(), 'markbridge-truth-'))
  const target = await openTarget({ v2: v2Url, v3: v3Url }, readEnvironment())
  const sides = openSides({ ...target, onCodesUnknown: () => undefined })
  const files = openRunFiles(folder)
  const selection = {
    ...{ partner: null, registrations: false, noise: run.noise },
    fromMs: Date.parse(run.from),
    toMs: Date.parse(run.to) + DAY_MS,
    learners: learners === undefined ? undefined : listLearners(learners),
    rules: run.rules ? createOwnRules(partnerRules, today) : undefined,
  }
  const go = async (resumed: Checkpoint | undefined): Promise<RunDocument> => {
    const stop = new AbortController()
    let before: number | undefined
    const { document } = await runReads(
      {
        ...{ files, digest: '', resumed, sampleKey: '', selection, clock: systemClock, pauseMs: 0 },
        marks: { v2: sides.v2, v3: sides.v3 },
        registrations: sides.registrations,
        onProgress: ({ daysDone, days }) => {
          before ??= daysDone
          if (run.interrupted && daysDone > before && daysDone < days) stop.abort(new Error('interrupted'))
        },
        onFailure: () => undefined,
      },
      stop.signal,
    )
    if (document.complete || !stop.signal.aborted) return document
    const text = await files.readCheckpoint(undefined)
    return text === undefined ? document : go(readCheckpoint(text))
  }
  try {
    return await go(undefined)
  } finally {
    await sides.close()
    await rm(folder, { recursive: true })
  }
}
