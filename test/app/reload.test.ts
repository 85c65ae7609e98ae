import { describe, expect, it } from 'vitest'

import { createReload } from '../../src/app/reload.ts'
import { type Config, type ConfigChanges, parseConfig } from '../../src/config/index.ts'
import { AdapterError } from '../../src/errors.ts'

function configOf(id: string): Config {
  return parseConfig({
    upstreams: { v3: { baseUrl: 'https://v3.test' } },
    partners: [{ id, match: { any: true } }],
  })
}

const unchanged = { added: [], removed: [], changed: [], needsRestart: [] }

/** Creates a reload that logs its calls with the partner of each configuration. */
function start(refused = ''): { log: string[]; reload: ReturnType<typeof createReload> } {
  const log: string[] = []
  const idOf = ({ partners }: Config): string => partners[0]?.id ?? ''
  const apply = (next: Config): Promise<ConfigChanges> => {
    log.push(`apply ${idOf(next)}`)
    if (idOf(next) === refused) return Promise.reject(new AdapterError('ADP_JOURNAL_UNAVAILABLE', 'Not now.'))
    return Promise.resolve({ ...unchanged, changed: [idOf(next)] })
  }
  const reload = createReload(apply, {
    reloaded: ({ changed }) => log.push(`reloaded ${changed.join()}`),
    refused: (faults) => log.push(`refused ${faults.map(({ code }) => code).join()}`),
  })
  return { log, reload }
}

const changedBy = async (reload: Promise<ConfigChanges>): Promise<readonly string[]> => (await reload).changed

describe('createReload', () => {
  it('reports every fault of a configuration that cannot be loaded or applied, and still runs the next reload', async () => {
    const { log, reload } = start('b')
    const faulty = new AdapterError('ADP_CONFIGURATION', 'two', {
      details: [
        { code: 'one', message: 'first' },
        { code: 'two', message: 'second' },
      ],
    })
    await expect(reload(() => Promise.reject(faulty))).rejects.toBe(faulty)
    await expect(reload(() => Promise.reject(new Error('a secret')))).rejects.toThrow('a secret')
    await expect(reload(() => configOf('b'))).rejects.toThrow('Not now.')
    await reload(() => configOf('c'))
    expect(log).toEqual([
      'refused one,two',
      'refused ADP_INTERNAL',
      'apply b',
      'refused ADP_JOURNAL_UNAVAILABLE',
      'apply c',
      'reloaded c',
    ])
  })

  it('runs a single further reload, with the last configuration, for all requests that arrive during a reload', async () => {
    const { log, reload } = start('a')
    const { promise: slow, resolve: finish } = Promise.withResolvers<Config>()
    const results = [reload(() => slow), ...['b', 'c', 'd'].map((id) => reload(() => configOf(id)))]
    finish(configOf('a'))
    const settled = await Promise.allSettled(results.map(changedBy))
    expect(settled.map((result) => (result.status === 'fulfilled' ? result.value : 'refused'))).toEqual([
      'refused',
      ['d'],
      ['d'],
      ['d'],
    ])
    expect(log.filter((line) => line.startsWith('apply'))).toEqual(['apply a', 'apply d'])
    expect(await changedBy(reload(() => configOf('e')))).toEqual(['e'])
  })
})
