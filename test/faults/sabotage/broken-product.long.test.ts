import { writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test, vi } from 'vitest'

import type { EffectEntry } from '../../../src/sandbox/control/routes.ts'
import { createRandom } from '../../../src/sandbox/random.ts'
import { isHeld, journalFile } from '../../e2e/support/journal-file.ts'
import { leave, payloadOf } from '../../e2e/support/leave.ts'
import { sandboxRegister } from '../../e2e/support/sandbox-register.ts'
import { startStopping } from '../../e2e/support/stopping-adapter.ts'
import { startSandbox } from '../../sandbox/start-sandbox.ts'
import { batchOf, flatRecords } from '../../support/batch-request.ts'
import { missingPostgres } from '../../support/start-postgres.ts'
import { checkHistory, type Finding } from '../check/check-history.ts'
import type { DamageKind } from '../damage/damage-file.ts'
import { createJournalDamage } from '../damage/damage-journal.ts'
import { createSequence, type Load, type LoadOptions, startLoad, usualLoad } from '../load/load.ts'
import { nameIn, type Samples } from '../load/write.ts'
import { startFaultProxy } from '../proxy/fault-proxy.ts'
import { drawFaults, type FaultShares } from '../proxy/fault.ts'
import { createForwardLog } from '../proxy/forwards.ts'
import { runScenario } from '../scenario/run-scenario.ts'
import { type Scenario, scenarios } from '../scenario/scenario.ts'
import { startLife } from '../supervisor/run-life.ts'

// Each test breaks a guard of the built product while it is loaded: what the guard keeps away must then be found.

const defect = (name: string): string => fileURLToPath(new URL(`defects/${name}.ts`, import.meta.url))
/** Of a loaded machine. */
const timeout = 180_000
const kindsOf = (findings: readonly Finding[]): string[] => findings.map(({ kind }) => kind)

/** The sandbox behind a proxy that notes what is sent to it and breaks connections, and clients with these tokens. */
async function startRig(tokens: readonly string[], faults: FaultShares = {}) {
  const domains = ['Attendance']
  const sandbox = await startSandbox({ tokens: tokens.map((token) => ({ token, domains })) })
  const tick = createSequence()
  const log = createForwardLog(tick)
  const proxy = await startFaultProxy({
    targets: [sandbox.port],
    plan: drawFaults(createRandom(1, 'behind'), faults),
    onForward: log.onForward,
  })
  onTestFinished(() => proxy.close())
  const samples = (await sandbox.json('GET', '/_sandbox/samples')).body as Samples
  return {
    sandbox,
    config: {
      upstreams: { v3: { baseUrl: proxy.url } },
      partners: [{ id: 'acme', match: { any: true }, v3: { readBackAfterMs: [10, 20] } }],
    },
    stopFaults: () => proxy.stopFaults(),
    /** Starts clients that write no learner and event twice while others of `events` are left. */
    load: (url: string, token: string, more: Partial<LoadOptions> = {}, events = Infinity) => {
      const options = { connections: 1, maxAttempts: 1, impatience: 0, replayShare: 0, uniqueKeys: true }
      const chosen = { ...samples, events: samples.events.slice(0, events) }
      const own = { ...options, ...more, url, samples: chosen, tick, tokens: [token], seed: 1 }
      const load = startLoad({ ...usualLoad, ...own })
      onTestFinished(() => load.close())
      return load
    },
    check: async (load: Load): Promise<readonly Finding[]> => {
      const effects = (await sandbox.json('GET', '/_sandbox/effects')).body as EffectEntry[]
      const own = new Set(load.history().writes.map(({ write }) => write.name))
      const known = effects.filter(({ comment }) => own.has(nameIn(comment) ?? ''))
      return checkHistory(load.history(), known, { forwards: log.forwards() }).findings
    },
  }
}

/** Two instances of which the first stands still for longer than its lease; undefined where it holds SQLite's file meanwhile. */
async function outliveLease(): Promise<readonly Finding[] | undefined> {
  const rig = await startRig([])
  const { url } = journalFile()
  const keys = [{ id: 'k1', key: { env: 'JOURNAL_KEY' } }]
  const config = { ...rig.config, journal: { url, keys }, tuning: { leaseMs: 1_000 } }
  const stop = { kind: 'beforeSend', nth: 12, store: 'sqlite', signal: 'SIGSTOP' } as const
  const stopping = await startStopping(config, stop, [defect('ignore-lease')])
  const other = await startStopping(config)
  const load = rig.load(stopping.url, 'sandbox')
  await stopping.stopped()
  if (isHeld(url)) return undefined
  await other.logged('records recovered')
  stopping.goOn()
  await load.stop()
  // After its end nothing can leave any longer.
  await stopping.close()
  return rig.check(load)
}

test('posts of an instance whose lease is over are found: doubled records', { timeout }, async () => {
  let findings = await outliveLease()
  for (let tries = 1; findings === undefined && tries < 5; tries += 1) findings = await outliveLease()
  expect(kindsOf(findings ?? [])).toContain('doubled')
})

/** One client leaves records open, another comes, and the background has a look: what it logs is `outcome`. */
async function leaveToOther(imports: readonly string[], outcome: string): Promise<readonly Finding[]> {
  const rig = await startRig(['token-of-one', 'token-of-other'])
  const config = { ...rig.config, journal: { url: journalFile().url } }
  const killed = await startStopping(config, { kind: 'beforeSend', nth: 12, store: 'sqlite' })
  const load = rig.load(killed.url, 'token-of-one')
  await killed.ended()
  await load.stop()
  const next = await startStopping(config, undefined, imports)
  const { batch, headers } = await sandboxRegister(rig.sandbox, 1)
  const reply = await next.post(batch, { ...headers, Authorization: 'Bearer token-of-other' })
  expect(reply.text).toContain('HTTP/1.1 201')
  await next.logged(outcome)
  await next.close()
  return rig.check(load)
}

test('a recovery with the credentials of another client is found: lent tokens', { timeout }, async () => {
  const [sound, broken] = await Promise.all([
    leaveToOther([], 'recovery waits'),
    leaveToOther([defect('lend-credentials')], 'records recovered'),
  ])
  expect(kindsOf(sound)).not.toContain('lent')
  expect(kindsOf(broken)).toContain('lent')
})

test('an adapter that knows marks by their times is found: doubled records', { timeout }, async () => {
  const scenario: Scenario = {
    name: 'times of its own',
    store: 'sqlite',
    values: { clock: 'server' },
    behind: { resetAfter: 0.3 },
    imports: [defect('trust-times')],
  }
  const { findings } = await runScenario(scenario, { seed: 1, forMs: 1_500, settleMs: 60_000 })
  expect(new Set(kindsOf(findings))).toEqual(new Set(['doubled']))
})

/** Marks of 30 learners, one after another, then 30 more of them, while requests to the service are lost. */
async function writeTwice(imports: readonly string[]): Promise<readonly Finding[]> {
  const rig = await startRig([], { resetBefore: 0.4 })
  const adapter = await startStopping(
    { ...rig.config, journal: { url: journalFile().url } },
    undefined,
    imports,
  )
  const load = rig.load(adapter.url, 'sandbox', { maxRecords: 1, maxAttempts: 3, connections: 4 }, 1)
  await vi.waitFor(() => expect(load.records()).toBeGreaterThan(60), { timeout })
  rig.stopFaults()
  await load.stop()
  await load.sendOpen()
  return rig.check(load)
}

test('times of receipt that run backwards are found: marks that stay unknown', { timeout }, async () => {
  const [sound, broken] = await Promise.all([writeTwice([]), writeTwice([defect('date-backwards')])])
  expect(sound).toEqual([])
  // An older mark that seems to be newer is taken for somebody else's, which must stand.
  expect(broken[0]).toMatchObject({ kind: 'unsettled', because: 'told unknown at last, recorded 0 times' })
})

/** Strikes the journal that an adapter has left behind, once in each way, while no process has it open. */
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
  // Never in use, and the first copy is kept.
  const random = { ...createRandom(1, 'damage'), pick, chance: (share: number) => share > 0.5 }
  const damage = createJournalDamage(file, random)
  const begin = () => startLife({ configFile, args: [], imports, env: {} })
  while (struck < kinds.length) await damage.betweenLives(begin, { url: '', configFile })
  return damage.findings()
}

test(
  'a journal that is used although it was deleted or replaced is found: trusted journals',
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
  'an adapter that forgets what V2 served is found: records on both faces',
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

/** V2 is slow, so that writes are under way there whenever all schools go to V3; nothing else goes wrong. */
async function swingWhileV2IsSlow(imports: readonly string[]): Promise<readonly Finding[]> {
  const { stages, load } = scenarios.flips
  const scenario: Scenario = {
    ...{ name: 'stages changed, V2 slow', store: 'postgres', instances: 2, leaseMs: 1_000, lastEvents: 1 },
    stages: {
      ...{ ...stages, operators: 1, swings: true, schools: 2, drainMs: 8_000, behindV2: {} },
      slowV2Ms: 3_000,
    },
    load: { ...load, connections: 12, impatience: 0, replayShare: 0, thinkMs: 300, patienceMs: 20_000 },
    imports,
  }
  return (await runScenario(scenario, { seed: 2, forMs: 30_000, settleMs: 10_000 })).findings
}

test.skipIf(missingPostgres() !== undefined)(
  'an adapter that skips the drain of a step forward is found: writes that end on V2 after newer ones on V3',
  { timeout },
  async () => {
    const [sound, broken] = await Promise.all([
      swingWhileV2IsSlow([]),
      swingWhileV2IsSlow([defect('skip-drain')]),
    ])
    expect(sound).toEqual([])
    expect(new Set(kindsOf(broken))).toEqual(new Set(['order']))
  },
)
