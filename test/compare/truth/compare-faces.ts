import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { openSides } from '../../../src/app/compare/open-sides.ts'
import { openTarget } from '../../../src/cli/comparing/run-target.ts'
import { systemClock } from '../../../src/clock.ts'
import { readEnvironment } from '../../../src/config/index.ts'
import { createOwnRules } from '../../../src/compare/diff/index.ts'
import { DAY_MS, listLearners, openRunFiles, runReads } from '../../../src/compare/run/index.ts'
import { partnerRules, today } from './partner-rules.ts'
import type { CompareFaces } from './run-campaign.ts'

/** Compares as `markbridge compare run --v2 … --v3 …` does, in this process. */
export const compareFaces: CompareFaces = async ({ v2Url, v3Url }, { from, to, noise, rules }, learners) => {
  const folder = await mkdtemp(join(tmpdir(), 'markbridge-truth-'))
  const target = await openTarget({ v2: v2Url, v3: v3Url }, readEnvironment())
  const sides = openSides({ ...target, onCodesUnknown: () => undefined })
  try {
    const { document } = await runReads(
      {
        files: openRunFiles(folder),
        digest: '',
        resumed: undefined,
        sampleKey: '',
        selection: {
          partner: null,
          fromMs: Date.parse(from),
          toMs: Date.parse(to) + DAY_MS,
          learners: learners === undefined ? undefined : listLearners(learners),
          registrations: false,
          noise,
          rules: rules ? createOwnRules(partnerRules, today) : undefined,
        },
        marks: { v2: sides.v2, v3: sides.v3 },
        registrations: sides.registrations,
        clock: systemClock,
        pauseMs: 0,
        onProgress: () => undefined,
        onFailure: () => undefined,
      },
      new AbortController().signal,
    )
    return document
  } finally {
    await sides.close()
    await rm(folder, { recursive: true })
  }
}
