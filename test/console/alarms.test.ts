import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'

import { describe, expect, it } from 'vitest'

import { type Alarm, alarmsOf } from '../../src/console/alarms.ts'
import type { Overview, Trouble } from '../../src/console/data/port.ts'
import type { PartnerDocument } from '../../src/rollout/partner-document.ts'
import { runCommand } from '../cli/run-command.ts'
import { journalFile } from '../e2e/support/journal-file.ts'
import { makeFolder } from '../journal/open-sqlite.ts'
import { startAdapter } from '../support/start-adapter.ts'
import { sampleOverview } from './support/sample-data.ts'

const { balances } = sampleOverview('all')
const quiet: Pick<Overview, 'balances' | 'instances' | 'index' | 'trouble'> = {
  balances: balances.map((balance) => ({ ...balance, holds: true })),
  instances: [],
  index: { waiting: 0, unreadable: [], lostSteps: 0 },
  trouble: [],
}
const partnerAt = (given: Partial<PartnerDocument> = {}, guardAlarm?: string, trailFault?: string) => {
  const document: PartnerDocument = {
    ...{ partner: 'acme', stage: 'canary', percent: 20, unit: 'school', source: 'store', revision: 3 },
    ...{ since: new Date(7).toISOString(), by: 'olga', reason: 'first' },
    advice: { verdict: 'not yet', missing: ['x'] },
    ...given,
  }
  return { document, guardAlarm, trailFault }
}
const pending = {
  stage: 'v3',
  percent: 100,
  revision: 4,
  by: 'otto',
  reason: 'more',
  needsApproval: true,
  expires: new Date(9).toISOString(),
} as const
const trouble = (kind: Trouble['kind']): Trouble => ({ kind, partner: 'acme', count: 3, sinceMs: 5 })
const kinds = ['v3Fails', 'denied', 'ownDenied', 'notApplied', 'unknown', 'parked', 'deadLetters'] as const
const lost = { instance: 2, host: 'mb-1', pid: 17, leaseUntilMs: 9, state: 'lost', openBatches: 1 } as const

/** Every possible alarm. */
const all: readonly Alarm[] = [
  ...alarmsOf(
    {
      balances: balances.map((balance) => ({ ...balance, holds: false })),
      instances: [lost],
      index: { ...quiet.index, lostSteps: 2 },
      trouble: kinds.map(trouble),
    },
    [
      partnerAt({ by: 'guard', stage: 'shadow' }),
      partnerAt({ pending }, 'V3 does worse than V2.'),
      partnerAt({}, undefined, 'broken at entry 2: entry 2 was altered.'),
    ],
  ),
] // prettier-ignore

describe('the alarms of the console', () => {
  it('are empty if nothing is wrong and no step waits', () => {
    expect(alarmsOf(quiet, [partnerAt()])).toEqual([])
  })

  it.each(kinds)('contain an alarm with its beginning and a remedy for %s', (kind) => {
    const [alarm, ...others] = alarmsOf({ ...quiet, trouble: [trouble(kind)] }, [partnerAt()])
    expect(others).toEqual([])
    expect(alarm).toMatchObject({ sinceMs: 5, text: expect.stringContaining('3 ') as unknown })
    expect(alarm?.remedy).not.toBe('')
  })

  it.each<[string, ReturnType<typeof partnerAt>, Partial<Alarm>]>([
    ['a guard has acted', partnerAt({ by: 'guard', stage: 'shadow' }), { tone: 'bad', sinceMs: 7 }],
    ['a guard only warns', partnerAt({}, 'V3 does worse.'), { tone: 'bad' }],
    [
      'the audit trail is broken',
      partnerAt({}, undefined, 'broken at entry 2: entry 2 was altered.'),
      { tone: 'bad', href: '/audit' },
    ],
    ['a step waits for approval', partnerAt({ pending }), { tone: 'note' }],
  ])('contain an alarm if %s', (_what, given, expected) => {
    expect(alarmsOf(quiet, [given])).toMatchObject([expected])
  })

  it('begin with the worst alarm', () => {
    const tones = all.map(({ tone }) => tone)
    expect(tones).toEqual(tones.toSorted())
  })

  const commands = [
    ...new Set(all.flatMap(({ remedy }) => [...remedy.matchAll(/markbridge ((?:doctor|journal ls|rollout \w+ \w+)(?: --reason "[^"]*")?)/g)].map(([, command = '']) => command))),
  ] // prettier-ignore

  it('name commands in their remedies', () => {
    expect(commands.length).toBeGreaterThan(3)
  })

  it.each(commands)('name in their remedies only commands that the program has: %s', async (command) => {
    const journal = journalFile()
    const adapter = await startAdapter('http://127.0.0.1:1', { journal: { url: journal.url } })
    const file = join(await makeFolder(), 'markbridge.yaml')
    const partners = [{ id: 'acme', match: { any: true }, stage: 'shadow' }]
    const upstreams = { v2: { baseUrl: adapter.url }, v3: { baseUrl: adapter.url } }
    await writeFile(file, JSON.stringify({ journal: { url: journal.url }, upstreams, partners }))
    const words = [...command.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, word]) => quoted ?? word ?? '')
    const { status, stderr } = await runCommand([...words, '--config', file])
    expect(status, stderr).not.toBe(2)
  })
})
