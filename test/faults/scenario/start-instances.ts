import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { createRandom } from '../../../src/sandbox/random.ts'
import { startPostgres, type TestPostgres } from '../../support/start-postgres.ts'
import { startSupervisor, type Supervisor } from '../supervisor/supervisor.ts'
import type { Scenario } from './scenario.ts'

/** Adapters that share one store. */
export interface Instances {
  readonly supervisors: readonly Supervisor[]
  /** The store's server, where it is one that can be crashed. */
  readonly postgres: TestPostgres | undefined
  close(): Promise<void>
}

/** Patience that fits faults of a test. */
const timeouts = { connectMs: 1_000, headersMs: 1_500, bodyMs: 1_500 }

/** Starts the adapters of a scenario in front of the service at `v3Url`, on a store of their own. */
export async function startInstances(scenario: Scenario, v3Url: string, seed: number): Promise<Instances> {
  const folder = mkdtempSync(join(tmpdir(), 'markbridge-journal-'))
  const postgres = scenario.store === 'postgres' ? await startPostgres() : undefined
  const file = scenario.store === 'none' ? 'none' : `sqlite:${join(folder, 'journal.db')}`
  const url = (await postgres?.createDatabase()) ?? file
  const { writeMode = 'single' } = scenario
  const v3 = { budgetMs: 10_000, readBackAfterMs: [50, 100, 200], writeMode }
  const config = {
    upstreams: { v3: { baseUrl: v3Url, timeouts } },
    partners: [{ id: 'acme', match: { any: true }, v3 }],
    journal: { url },
  }
  const supervisors: Supervisor[] = []
  for (let number = 0; number < (scenario.instances ?? 1); number += 1) {
    const random = createRandom(seed, `kills ${number}`)
    const store = scenario.store === 'postgres' ? 'postgres' : 'sqlite'
    const plan = scenario.kills === undefined ? undefined : ({ ...scenario.kills, random, store } as const)
    supervisors.push(
      await startSupervisor({ config, plan, args: ['--workers', String(scenario.workers ?? 1)] }),
    )
  }
  return {
    supervisors,
    postgres,
    close: async () => {
      await Promise.all(supervisors.map((each) => each.close()))
      await postgres?.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
