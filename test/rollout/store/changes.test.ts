import { join } from 'node:path'

import { expect, it } from 'vitest'

import { quietUntil } from '../../../src/rollout/store/changes.ts'
import { createRolloutStore } from '../../../src/rollout/store/rollout-store.ts'
import { createJournalClock, makeFolder, openSqlite } from '../../journal/open-sqlite.ts'
import { changeTo, shadow, soon } from './open-stores.ts'

const nothing = { notedMs: undefined, killedMs: undefined, lostMs: undefined }
const at = (stage: 'legacy' | 'shadow' | 'canary', sinceMs: number) => ({ stage, sinceMs })

it.each([
  ['-Infinity if there was no unrecorded batch', undefined, {}, -Infinity],
  ['the end of the resend window after an unrecorded batch if the stage comes from the file', undefined, { notedMs: 500 }, 600],
  ['the end of the resend window after shadow began', at('shadow', 1_000), {}, 1_100],
  ['-Infinity at canary, where all batches are recorded', at('canary', 1_000), {}, -Infinity],
  ['the end of the resend window after the last unrecorded batch at shadow', at('shadow', 1_000), { notedMs: 2_000 }, 2_100],
  ['the end of the resend window after an instance was killed', at('shadow', 1_000), { notedMs: 2_000, killedMs: 3_000 }, 3_100],
  ['the end of two resend windows after an instance was lost, because the instance may still serve for one window', at('shadow', 1_000), { killedMs: 3_000, lostMs: 2_950 }, 3_150],
])('quietUntil returns the time from which no client can resend an unrecorded batch: %s', (_name, state, known, untilMs) => {
  expect(quietUntil(state, { ...nothing, ...known }, 100)).toBe(untilMs)
}) // prettier-ignore

it('the store of stages treats a pending change as expired if the database clock was set back by more than the lifetime of a change', async () => {
  const clock = createJournalClock()
  const { journal } = await openSqlite(join(await makeFolder(), 'journal.db'), { clock })
  const store = createRolloutStore(journal.database)
  const pending = async () => (await store.snapshot()).partners.get('acme')?.pending?.revision
  clock.setWall(2_400_000)
  await store.propose({ ...changeTo(shadow), ...soon })
  // Setting the clock back by less than the lifetime does not expire the change.
  clock.setWall(-1_000)
  expect(await pending()).toBe(1)
  clock.setWall(-2_399_000)
  expect(await pending()).toBeUndefined()
  expect(await store.commit('acme', 1)).toEqual({ kind: 'gone' })
  expect(await store.propose({ ...changeTo(shadow), ...soon })).toEqual({ kind: 'proposed', revision: 2 })
  const actions = (await store.history({})).map(({ action, revision }) => [action, revision])
  expect(actions).toEqual([['propose', 1], ['expire', 1], ['propose', 2]]) // prettier-ignore
})
