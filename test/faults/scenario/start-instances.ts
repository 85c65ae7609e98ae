import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { createRandom } from '../../../src/sandbox/random.ts'
import { startPostgres, type TestPostgres } from '../../support/start-postgres.ts'
import { drawFaults } from '../proxy/fault.ts'
import { clockSettings, setClock } from '../clocks/clocks.ts'
import { createJournalDamage, type JournalDamage } from '../damage/damage-journal.ts'
import { schoolHeader } from '../load/client.ts'
import { type FaultProxy, startFaultProxy } from '../proxy/fault-proxy.ts'
import { type KillPlan, startSupervisor, type Supervisor } from '../supervisor/supervisor.ts'
import { countOpen } from './open-records.ts'
import { PARTNER, type Scenario } from './scenario.ts'
import { overridesIn } from '../../support/main-of-cli.ts'

/** Adapters that share one store. */
export interface Instances {
  readonly supervisors: readonly Supervisor[]
  /** The PostgreSQL server of the journal, or `undefined` if the scenario uses another store. */
  readonly postgres: TestPostgres | undefined
  /** The URL of the journal itself, not of a proxy in front of it. */
  readonly storeUrl: string
  /** The configuration of the adapters, but with the URL of the journal itself. */
  readonly config: object
  /** The proxy between adapters and store, if there is one. */
  readonly storeWay: FaultProxy | undefined
  /** The files with the clock offset of each machine. Empty if the scenario steps no clock. */
  readonly clocks: readonly string[]
  readonly damage: JournalDamage | undefined
  close(): Promise<void>
}

export interface ServiceUrls {
  readonly v3: string
  /** The address of V2, if it has its own port. */
  readonly v2: string | undefined
}

/** Time limits that suit the faults of a test. */
const timeouts = { connectMs: 1_000, headersMs: 1_500, bodyMs: 1_500 }

/** Starts the adapters of a scenario in front of the service, on their own store. The adapters log to `logFolder`. */
export async function startInstances(
  scenario: Scenario,
  service: ServiceUrls,
  seed: number,
  logFolder: string | undefined,
): Promise<Instances> {
  const folder = mkdtempSync(join(tmpdir(), 'markbridge-journal-'))
  const postgres = scenario.store === 'postgres' ? await startPostgres() : undefined
  const file = scenario.store === 'none' ? 'none' : `sqlite:${join(folder, 'journal.db')}`
  const storeUrl = (await postgres?.createDatabase()) ?? file
  const storeWay = await placeBefore(storeUrl, scenario, seed)
  const { writeMode = 'single', readBackAfterMs = [50, 100, 200], leaseMs } = scenario
  // The sandbox takes a few milliseconds per record.
  const v3 = { budgetMs: 10_000, readBackAfterMs, writeMode, batchRecordMs: 100 }
  const staged = stagedConfig(scenario, service)
  const config = {
    upstreams: { v3: { baseUrl: service.v3, timeouts }, ...staged.upstreams },
    partners: [{ id: PARTNER, match: { any: true }, v3, ...staged.partner }],
    journal: { url: storeWay?.url ?? storeUrl },
    ...staged.sections,
  }
  const machines =
    scenario.clock === undefined ? 0 : scenario.store === 'postgres' ? (scenario.instances ?? 1) : 1
  const clocks = Array.from({ length: machines }, (_, number) => join(folder, `clock-${number}`))
  for (const clock of clocks) setClock(clock, 0)
  const damage =
    scenario.damaged === true
      ? createJournalDamage(join(folder, 'journal.db'), createRandom(seed, 'damage'))
      : undefined
  const logFileOf = (number: number): string | undefined =>
    logFolder === undefined ? undefined : join(logFolder, `${seed}-adapter-${number}.log`)
  const supervisors: Supervisor[] = []
  for (let number = 0; number < (scenario.instances ?? 1); number += 1) {
    const random = createRandom(seed, `kills ${number}`)
    const store = scenario.store === 'postgres' ? 'postgres' : 'sqlite'
    const count = (pid: number): Promise<number> => countOpen(storeUrl, pid)
    const plan: KillPlan | undefined =
      scenario.kills === undefined
        ? undefined
        : {
            ...scenario.kills,
            random,
            store,
            mayMissStore: scenario.storeWay !== undefined || scenario.pauses?.others === true,
            ...(damage === undefined ? {} : { betweenLives: damage.betweenLives }),
            ...(scenario.store === 'none' || damage !== undefined ? {} : { countOpen: count }),
          }
    // Instances on one file are on one machine and share its clock.
    const clock = clocks[store === 'sqlite' ? 0 : number]
    const { imports, env } =
      scenario.clock === undefined ? { imports: [], env: {} } : clockSettings(scenario.clock, clock ?? '')
    const settings = {
      imports: [...imports, ...(scenario.imports ?? [])],
      env: { ...env, ...overridesIn({ leaseMs }) },
    }
    const args = ['--workers', String(scenario.workers ?? 1)]
    supervisors.push(await startSupervisor({ config, plan, args, logFile: logFileOf(number), ...settings }))
  }
  storeWay?.beginFaults()
  return {
    supervisors,
    postgres,
    storeUrl,
    config: { ...config, journal: { url: storeUrl } },
    storeWay: storeWay?.proxy,
    clocks,
    damage,
    close: async () => {
      await Promise.all(supervisors.map((each) => each.close()))
      await storeWay?.proxy.close()
      await postgres?.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Returns the sections of the configuration for a partner that moves between V2 and V3. */
function stagedConfig(
  { stages }: Scenario,
  { v2 }: ServiceUrls,
): { readonly upstreams: object; readonly partner: object; readonly sections: object } {
  if (stages === undefined || v2 === undefined) return { upstreams: {}, partner: {}, sections: {} }
  const { begin: stage, resendWindowMs } = stages
  const { connectMs, headersMs } = timeouts
  return {
    upstreams: { v2: { baseUrl: v2, timeouts: { connectMs, headersMs } } },
    partner: { stage, canary: { header: schoolHeader } },
    sections: { rollout: { resendWindowMs } },
  }
}

/** Starts a proxy in front of the store at `url`. Its faults begin when all adapters have started once. */
async function placeBefore(
  url: string,
  { storeWay }: Scenario,
  seed: number,
): Promise<{ proxy: FaultProxy; url: string; beginFaults: () => void } | undefined> {
  if (storeWay === undefined) return undefined
  const way = new URL(url)
  const faults = drawFaults(createRandom(seed, 'store way'), storeWay)
  let isOpen = true
  const plan = { ...faults, connection: () => (isOpen ? 'pass' : faults.connection()) }
  const proxy = await startFaultProxy({ targets: [Number(way.port)], plan, wire: 'raw' })
  way.port = String(proxy.port)
  return { proxy, url: way.href, beginFaults: () => (isOpen = false) }
}
