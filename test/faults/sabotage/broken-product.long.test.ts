import { writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'

import { createRandom } from '../../../src/sandbox/random.ts'
import { journalFile } from '../../e2e/support/journal-file.ts'
import { leave, payloadOf } from '../../e2e/support/leave.ts'
import { batchOf, flatRecords } from '../../support/batch-request.ts'
import { missingPostgres } from '../../support/start-postgres.ts'
import type { Finding } from '../check/finding.ts'
import { createJournalDamage, type DamageKind } from '../damage/damage-journal.ts'
import { runScenario } from '../scenario/run-scenario.ts'
import { type Scenario, scenarios } from '../scenario/scenario.ts'
import { startLife } from '../supervisor/run-life.ts'
import { defect } from './defects.ts'

// Each test breaks a safeguard of the built product while the product is loaded. The fault check must then find the faults that the
// safeguard prevents.

/** The time limit of each test, which suffices on a loaded machine. */
const timeout = 180_000
const kindsOf = (findings: readonly Finding[]): string[] => findings.map(({ kind }) => kind)

test(
  'the fault check reports doubled records if the adapter recognises marks by their times',
  { timeout },
  async () => {
    const scenario: Scenario = {
      name: 'times of its own',
      store: 'sqlite',
      values: { clock: 'server' },
      behind: { resetAfter: 0.3 },
      imports: [defect('trust-times')],
    }
    const { findings } = await runScenario(scenario, { seed: 1, forMs: 1_500, settleMs: 60_000 })
    expect(new Set(kindsOf(findings))).toEqual(new Set(['doubled']))
  },
)

/** Sends marks of 30 learners one after another, and then marks of the same learners again, while requests to the service are lost. */
async function writeTwice(imports: readonly string[]): Promise<readonly Finding[]> {
  const scenario: Scenario = {
    ...{ name: 'written twice', store: 'sqlite', lastEvents: 1, readBackAfterMs: [10, 20], imports },
    behind: { resetBefore: 0.4 },
    load: { connections: 4, maxRecords: 1, maxAttempts: 3, impatience: 0, replayShare: 0, uniqueKeys: true },
  }
  const bounds = { seed: 1, forMs: timeout, settleMs: 10_000, records: 61 }
  return (await runScenario(scenario, bounds)).findings
}

test(
  'the fault check reports marks that stay unknown if the adapter lets its times of receipt go backwards',
  { timeout },
  async () => {
    const [sound, broken] = await Promise.all([writeTwice([]), writeTwice([defect('date-backwards')])])
    expect(sound).toEqual([])
    // With the defect the older mark seems newer, so the adapter takes it for a mark of another program and does not overwrite it.
    expect(broken[0]).toMatchObject({ kind: 'unsettled', because: 'last answer unknown, recorded 0 times' })
  },
)

/** Damages the journal that an adapter has left behind, once in each way, while no process has it open. */
async function strikeAll(
  kinds: readonly DamageKind[],
  imports: readonly string[],
): Promise<readonly Finding[]> {
  const journal = journalFile()
  await leave(journal, { payload: payloadOf(batchOf(flatRecords(1))), learners: [1] })
  const file = journal.url.replace('sqlite:', '')
  const configFile = join(dirname(file), 'markbridge.yaml')
  const v3 = { baseUrl: 'http://127.0.0.1:9' }
  writeFileSync(
    configFile,
    JSON.stringify({ listen: { port: 0 }, upstreams: { v3 }, journal: { url: journal.url } }),
  )
  let struck = 0
  const pick = (): never => kinds[struck++] as never
  // With this `chance` the damage always strikes while no adapter runs, and the journal is copied only once, before the first damage.
  const random = { ...createRandom(1, 'damage'), pick, chance: (share: number) => share > 0.5 }
  const damage = createJournalDamage(file, random)
  const begin = () => startLife({ configFile, args: [], imports, env: {} })
  while (struck < kinds.length) await damage.betweenLives(begin, { url: '', configFile })
  return damage.findings()
}

test(
  'the fault check reports that the adapter trusted a damaged journal if the adapter uses a journal that was deleted or replaced',
  { timeout },
  async () => {
    const kinds = ['deleted', 'oldCopy', 'emptied'] as const
    const [sound, broken] = await Promise.all([
      strikeAll(kinds, []),
      strikeAll(kinds, [defect('trust-any-journal')]),
    ])
    expect(sound).toEqual([])
    expect(broken).toMatchObject(kinds.map(() => ({ kind: 'trusted', because: 'the adapter started' })))
  },
)

test.skipIf(missingPostgres() !== undefined)(
  'the fault check reports doubled records if the adapter forgets the writes that V2 served',
  { timeout },
  async () => {
    const { stages, behind, before, load } = scenarios.flips
    const scenario: Scenario = {
      ...{ name: 'stages changed', store: 'postgres', instances: 2, leaseMs: 1_000 },
      ...{ stages: { ...stages, gapMs: 600 }, behind, before, load },
      imports: [defect('forget-v2')],
    }
    const { findings } = await runScenario(scenario, { seed: 4, forMs: 35_000, settleMs: 5_000 })
    expect(kindsOf(findings)).toContain('doubled')
  },
)
