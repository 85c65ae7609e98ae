import { expect, it, vi } from 'vitest'

import { startSandbox } from '../sandbox/start-sandbox.ts'
import { journalFile } from './support/journal-file.ts'
import { sandboxRegister } from './support/sandbox-register.ts'
import { startStopping } from './support/stopping-adapter.ts'

const MARKS = 6

it('a client gets the result of its batch from the instance that it reaches, even if another instance has taken the batch over', async () => {
  const sandbox = await startSandbox()
  const register = await sandboxRegister(sandbox, MARKS)
  const config = {
    upstreams: { v3: { baseUrl: sandbox.url } },
    // Without an encryption key the journal stores no credentials, so recovery cannot finish the batch before the client resends it.
    journal: { url: journalFile().url },
    partners: [{ id: 'acme', match: { any: true }, v3: { readBackAfterMs: [10, 20], budgetMs: 4_000 } }],
  }
  const short = { leaseMs: 1_000 }
  const dying = await startStopping(config, {
    ...short,
    failpoint: { kind: 'beforeSend', nth: 3, store: 'sqlite' },
  })
  await dying.post(register.batch, register.headers).catch(() => 'broken off')
  await dying.ended()
  const withoutCredentials = await startStopping(config, short)
  await withoutCredentials.logged('recovery waits')
  const reached = await startStopping(config, short)
  const resend = async (): Promise<unknown> => {
    const { status, text } = await reached.post(register.batch, register.headers)
    return [status, text.match(/HTTP\/1\.1 201/g)?.length]
  }
  await vi.waitFor(async () => expect(await resend()).toEqual([200, MARKS]), 60_000)
  expect(await register.written()).toEqual(register.learners)
})
