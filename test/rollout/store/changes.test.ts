import { expect, it } from 'vitest'

import { quietUntil } from '../../../src/rollout/store/changes.ts'

const nothing = { notedMs: undefined, killedMs: undefined, lostMs: undefined }
const at = (stage: 'legacy' | 'shadow' | 'canary', sinceMs: number) => ({ stage, sinceMs })

it.each([
  ['nothing is known', undefined, {}, -Infinity],
  ['the stage is that of the file, and a batch was relayed unrecorded', undefined, { notedMs: 500 }, 600],
  ['shadow began', at('shadow', 1_000), {}, 1_100],
  ['canary began: all is recorded there', at('canary', 1_000), {}, -Infinity],
  ['a batch was relayed unrecorded', at('shadow', 1_000), { notedMs: 2_000 }, 2_100],
  ['an instance was killed', at('shadow', 1_000), { notedMs: 2_000, killedMs: 3_000 }, 3_100],
  ['an instance was lost, which may go on for a while', at('shadow', 1_000), { killedMs: 3_000, lostMs: 2_950 }, 3_150],
])('after %s', (_name, state, known, untilMs) => {
  expect(quietUntil(state, { ...nothing, ...known }, 100)).toBe(untilMs)
}) // prettier-ignore
