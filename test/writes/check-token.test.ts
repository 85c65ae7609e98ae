import { expect, it } from 'vitest'

import { checkToken } from '../../src/writes/check-token.ts'
import { authorisation, planOf } from './start-run.ts'
import { plannedRecord } from './planned-record.ts'
import { createWriteContext } from './write-context.ts'

const batch = 7
const stored = (state: 'open' | 'confirmed') => ({
  ...{ batch, partner: 'acme', owner: 'owner', receivedMs: 0, payload: undefined, credentials: undefined },
  records: [
    {
      ...{ position: 0, state, answer: undefined, reason: undefined, retry: undefined },
      ...{ superseded: false, attempts: 1 },
    },
  ],
})

/** Checks the token of a client that resends an orphaned batch and gets a single 200, which shows no outcomes. */
async function check(state: 'open' | 'confirmed') {
  const context = createWriteContext({
    reader: {
      get: () => Promise.resolve({ kind: 'read', json: { value: [] } }),
      held: () => 0,
      close: () => Promise.resolve(),
    },
  })
  context.orphans.set(batch, { after: new Map(), lease: 1, sinceMs: 0 })
  const isChecked = await checkToken(
    context,
    authorisation(),
    stored(state),
    planOf([plannedRecord(1)], false),
  )
  return { isChecked, hasCredentials: context.accepted.senderOf(batch) !== undefined }
}

it('checkToken keeps the credentials of a client that resends an orphaned batch, even if its reply shows no outcomes', async () => {
  expect(await check('open')).toEqual({ isChecked: true, hasCredentials: true })
})

it('checkToken makes no call to V3 if the stored reply contains nothing from V3', async () => {
  expect(await check('confirmed')).toEqual({ isChecked: false, hasCredentials: false })
})
