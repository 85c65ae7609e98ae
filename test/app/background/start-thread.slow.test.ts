import { readdirSync, readFileSync } from 'node:fs'

import { describe, expect, it, onTestFinished } from 'vitest'

import type { MainCalls, ThreadStart } from '../../../src/app/background/calls.ts'
import { startBackground } from '../../../src/app/background/background-thread.ts'
import { packConfig, parseConfig, Secret } from '../../../src/config/index.ts'

const rule = {
  name: 'code-letter',
  path: 'SchoolAttendanceCode',
  reason: 'V2 shows the letter',
  owner: 'attendance team',
  expires: '2099-01-01',
  when: { v2Class: 'code:*' },
}

/** Returns the arguments of a thread, whose partner has a rule, an error text and client credentials. */
function startOf(change: Partial<ThreadStart> = {}): ThreadStart {
  const config = parseConfig({
    upstreams: { v3: { baseUrl: 'http://127.0.0.1:1' }, v2: { baseUrl: 'http://127.0.0.1:2' } },
    partners: [
      {
        id: 'acme',
        match: { header: { name: 'x-partner', value: 'acme' } },
        stage: 'shadow',
        errorMessages: { ATT_VAL_2: 'No such event.' },
        compare: { rules: [rule] },
        v3: {
          subscriptionKey: new Secret('key'),
          auth: {
            mode: 'clientCredentials',
            tokenUrl: 'http://127.0.0.1:3/token',
            clientId: 'client',
            clientSecret: new Secret('secret'),
            scope: 'scope',
          },
        },
      },
    ],
    journal: { url: 'sqlite:x.db' },
  })
  return { config: packConfig(config), aheadMs: 0, hasStore: false, isObserved: false, nice: 19, ...change }
}

const noCalls: MainCalls = {
  authorise: () => expect.fail(),
  acquire: () => expect.fail(),
  evidenceKey: () => expect.fail(),
  note: () => undefined,
}

const niceValues = (): readonly number[] =>
  readdirSync('/proc/self/task').map((id) => {
    const fields = readFileSync(`/proc/self/task/${id}/stat`, 'latin1').split(') ').at(-1)?.split(' ')
    return Number(fields?.[16])
  })

describe('the thread of background work', () => {
  it('accepts a partner with rules and secrets, answers calls, and ends when it is closed', async () => {
    const ends: unknown[] = []
    const thread = startBackground(startOf(), noCalls, (cause) => ends.push(cause))
    await thread.call('wrote', 'acme', ['key', undefined])
    await thread.close()
    await thread.terminate()
    expect(ends).toEqual([undefined])
  })

  it.runIf(process.platform === 'linux')(
    'has a lower priority than the threads that serve clients',
    async () => {
      const thread = startBackground(startOf(), noCalls, () => undefined)
      onTestFinished(async () => {
        await thread.terminate()
      })
      await thread.call('wrote', 'acme', ['key'])
      expect(niceValues().filter((nice) => nice === 19)).toHaveLength(1)
    },
  )

  it('reports the error that ended the thread, and rejects the unanswered calls', async () => {
    const ended = Promise.withResolvers<unknown>()
    const thread = startBackground(startOf({ config: { packed: null } }), noCalls, ended.resolve)
    await expect(thread.call('wrote', 'acme', ['key'])).rejects.toMatchObject({ code: 'ADP_INTERNAL' })
    expect(await ended.promise).toMatchObject({ name: 'TypeError' })
  })
})
