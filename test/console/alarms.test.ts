import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'

import { describe, expect, it } from 'vitest'

import { type Alarm, checkAlarms } from '../../src/console/alarms.ts'
import type { Trouble } from '../../src/console/data/port.ts'
import type { PartnerDocument } from '../../src/rollout/partner-document.ts'
import { runCommand } from '../cli/run-command.ts'
import { journalFile } from '../e2e/support/journal-file.ts'
import { makeFolder } from '../journal/open-sqlite.ts'
import { startAdapter } from '../support/start-adapter.ts'
import { NOW_MS, sampleOverview } from './support/sample-data.ts'

type Evidence = Parameters<typeof checkAlarms>[0]
type Found = NonNullable<Evidence['found']>

const balances = sampleOverview('all').balances.map((balance) => ({ ...balance, holds: true }))
const partnerAt = (given: Partial<PartnerDocument> = {}, guardAlarm?: string, trailFault?: string) => {
  const document: PartnerDocument = {
    ...{ partner: 'acme', stage: 'canary', percent: 20, unit: 'school', source: 'store', revision: 3 },
    ...{ since: new Date(7).toISOString(), by: 'olga', reason: 'first' },
    advice: { verdict: 'not yet', missing: ['x'] },
    ...given,
  }
  return { document, guardAlarm, trailFault }
}
const quiet = { balances, instances: [], trouble: [], reportedMs: NOW_MS - 9_000 }
const health = { journal: 'available', stagesAgeMs: 300 } as const
const calm: Evidence = { nowMs: NOW_MS, found: quiet, partners: [partnerAt()], entries: [], health }
const finding = (found: Partial<Found>): Partial<Evidence> => ({ found: { ...quiet, ...found } })
const staged = (...partners: NonNullable<Evidence['partners']>): Partial<Evidence> => ({ partners })

const pending = {
  stage: 'v3',
  ...{ percent: 100, revision: 4, by: 'otto', reason: 'more' },
  ...{ needsApproval: true, expires: new Date(9).toISOString() },
} as const
const entry = {
  ...{
    entry: 1,
    at: new Date(5).toISOString(),
    by: 'otto',
    partner: 'acme',
    action: 'propose' as const,
    revision: 4,
    reason: '',
  },
  ...{ from: null, to: null },
} as const
const MINUTE_MS = 60_000
const since = (minutes: number, kind: Trouble['kind'], partner?: string): Partial<Evidence> =>
  finding({ trouble: [{ kind, partner, count: 3, sinceMs: NOW_MS - minutes * MINUTE_MS }] })
const instance = {
  instance: 2,
  host: 'mb-1',
  pid: 17,
  leaseUntilMs: 9,
  state: 'lost',
  openBatches: 1,
} as const
const damaged = balances.slice(0, 1).map((balance) => ({ ...balance, holds: false }))

/** Each cause with the kind, the tone and the partner of its alarm. */
const causes: readonly (readonly [string, Partial<Evidence>, Alarm['kind'], Alarm['tone'], string?])[] = [
  ['neither the console nor an adapter in its process reaches the journal', { found: undefined, health: undefined }, 'journalUnavailable', 'bad'],
  ['the adapter cannot write to the journal', { health: { ...health, journal: 'unavailable' } }, 'journalUnavailable', 'bad'],
  ['the adapter found its journal damaged', { health: { ...health, journal: 'damaged' } }, 'journalDamaged', 'bad'],
  ['a balance does not hold', finding({ balances: damaged }), 'journalDamaged', 'bad', 'acme'],
  ['the stages were not read for a minute', { health: { ...health, stagesAgeMs: MINUTE_MS } }, 'stagesStale', 'bad'],
  ['the stages were never read', { health: { ...health, stagesAgeMs: undefined } }, 'stagesStale', 'bad'],
  ['V3 fails', since(1, 'v3Fails'), 'v3Fails', 'bad'],
  ['V2 fails', since(1, 'v2Fails'), 'v2Fails', 'bad'],
  ['V3 limits the rate of calls', since(1, 'v3Throttles'), 'v3Throttles', 'note'],
  ['V3 denies the credentials of a client', since(1, 'denied', 'acme'), 'denied', 'bad', 'acme'],
  ['V3 denies the credentials of the configuration', since(1, 'ownDenied', 'acme'), 'ownDenied', 'bad', 'acme'],
  ['the token endpoint issues no token', since(1, 'noToken', 'acme'), 'noToken', 'bad', 'acme'],
  ['clients have not resent records', since(1, 'notApplied', 'acme'), 'notApplied', 'bad', 'acme'],
  ['there are dead letters', since(1, 'deadLetters', 'acme'), 'deadLetters', 'bad', 'acme'],
  ['records are unknown for a minute', since(1, 'unknown', 'acme'), 'unknown', 'note', 'acme'],
  ['records are unknown for more than an hour', since(61, 'unknown', 'acme'), 'unknown', 'bad', 'acme'],
  ['records are parked for a minute', since(1, 'parked', 'acme'), 'parked', 'note', 'acme'],
  ['records are parked for more than an hour', since(61, 'parked', 'acme'), 'parked', 'bad', 'acme'],
  ['a guard has acted', staged(partnerAt({ by: 'guard', stage: 'shadow' })), 'guardActed', 'bad', 'acme'],
  ['a guard only warns', staged(partnerAt({}, 'V3 does worse.')), 'guardWarns', 'bad', 'acme'],
  ['the audit trail is broken', staged(partnerAt({}, undefined, 'broken at entry 2.')), 'trailBroken', 'bad'],
  ['a step waits for approval', staged(partnerAt({ pending })), 'stepWaits', 'note', 'acme'],
  ['an instance was lost', finding({ instances: [instance] }), 'instanceGone', 'bad'],
  ['an instance does not renew its lease', finding({ instances: [{ ...instance, state: 'expired' }] }), 'instanceGone', 'bad'],
] // prettier-ignore

const all = causes.flatMap(([, evidence]): readonly Alarm[] => checkAlarms({ ...calm, ...evidence }).alarms)

describe('checkAlarms', () => {
  it('reports no alarm and no omitted check if nothing is wrong and no step waits', () => {
    expect(checkAlarms(calm)).toEqual({ alarms: [], unchecked: [] })
  })

  it.for(causes)(
    'reports one alarm, with its partner and a remedy, if %s',
    ([, evidence, kind, tone, partner]) => {
      const [alarm, ...others] = checkAlarms({ ...calm, ...evidence }).alarms
      expect(others).toEqual([])
      expect(alarm).toMatchObject({ kind, tone, partner })
      expect(alarm?.remedy).not.toBe('')
    },
  )

  it('lists the worst alarm first', () => {
    const trouble = (['unknown', 'denied', 'v3Fails'] as const).map((kind) => ({ kind, partner: 'acme', count: 1, sinceMs: NOW_MS })) // prettier-ignore
    const { alarms } = checkAlarms({ ...calm, ...finding({ trouble }) })
    expect(alarms.map(({ kind }) => kind)).toEqual(['v3Fails', 'denied', 'unknown'])
  })

  it('reports no alarm if only the console, and not the adapter, cannot read the journal', () => {
    expect(checkAlarms({ ...calm, found: undefined }).alarms).toEqual([])
  })

  it('reports when a step was proposed if the step waits for approval', () => {
    const entries = [{ ...entry, partner: 'other' }, entry]
    const [alarm] = checkAlarms({ ...calm, ...staged(partnerAt({ pending })), entries }).alarms
    expect(alarm?.sinceMs).toBe(5)
  })

  it.each<[string, Partial<Evidence>, number]>([
    ['the journal cannot be read', { found: undefined }, 1],
    ['the stages cannot be read', { partners: undefined }, 1],
    ['no instance has reported', finding({ reportedMs: undefined }), 1],
    ['the last report is older than a minute', finding({ reportedMs: NOW_MS - 61_000 }), 1],
    ['a balance was not checked', finding({ balances: balances.map((one) => ({ ...one, checkedMs: undefined })) }), 1],
  ])('lists what was not checked if %s', (_what, evidence, count) => {
    expect(checkAlarms({ ...calm, ...evidence }).unchecked).toHaveLength(count)
  }) // prettier-ignore

  const commands = [
    ...new Set(all.flatMap(({ remedy }) => [...remedy.matchAll(/markbridge ((?:doctor|journal ls|rollout \w+ \w+)(?: --reason "[^"]*")?)/g)].map(([, command = '']) => command))),
  ] // prettier-ignore

  it('names several commands in its remedies', () => {
    expect(commands.length).toBeGreaterThan(2)
  })

  it.each(commands)('names in its remedies the command %s, which the program has', async (command) => {
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
