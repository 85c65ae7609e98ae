import { expect, it } from 'vitest'

import { openConfiguredJournal } from '../../src/app/journal.ts'
import { createEvents } from '../../src/observability/events.ts'
import { createLogger } from '../../src/observability/logger.ts'
import { makeFolder } from '../journal/open-sqlite.ts'
import { adapterConfig } from '../support/start-adapter.ts'

it('openConfiguredJournal adds the duties "journal purge" and "journal age" to the heartbeat', async () => {
  const config = adapterConfig('http://127.0.0.1:1', {
    journal: { url: `sqlite:${await makeFolder()}/journal.db` },
  })
  const names: string[] = []
  const journal = await openConfiguredJournal({
    ...{ config, leaseMs: 10_000, stores: undefined, events: createEvents(createLogger('silent')) },
    heartbeat: { add: (...duties) => void names.push(...duties.map(({ name }) => name)) },
  })
  expect(names).toEqual(['journal purge', 'journal age'])
  await journal.close()
})
