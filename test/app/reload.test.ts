import { describe, expect, it } from 'vitest'

import { createReload, type ReloadTarget } from '../../src/app/reload.ts'
import { type Config, type ConfigChanges, parseConfig } from '../../src/config/index.ts'
import { AdapterError } from '../../src/errors.ts'

function configOf(id: string): Config {
  return parseConfig({
    upstreams: { v3: { baseUrl: 'https://v3.test' } },
    partners: [{ id, match: { any: true } }],
  })
}

const unchanged = { added: [], removed: [], changed: [], needsRestart: [] }

/** A target that writes down what it is given, each with the partner of its configuration. */
function start(refused = ''): { log: string[]; reload: ReturnType<typeof createReload> } {
  const log: string[] = []
  const idOf = ({ partners }: Config): string => partners[0]?.id ?? ''
  const target: ReloadTarget = {
    prepare: (next) => {
      log.push(`prepare ${idOf(next)}`)
      if (idOf(next) === refused)
        return Promise.reject(new AdapterError('ADP_JOURNAL_UNAVAILABLE', 'Not now.'))
      return Promise.resolve({
        changes: { ...unchanged, changed: [idOf(next)] },
        commit: () => void log.push(`commit ${idOf(next)}`),
      })
    },
  }
  const reload = createReload(target, {
    reloaded: ({ changed }) => log.push(`reloaded ${changed.join()}`),
    refused: (faults) =>
      log.push(`refused ${faults.map(({ code, message }) => `${code} ${message}`).join()}`),
  })
  return { log, reload }
}

const changedBy = async (reload: Promise<ConfigChanges>): Promise<readonly string[]> => (await reload).changed

describe('createReload', () => {
  it('commits what was prepared, and reports it', async () => {
    const { log, reload } = start()
    expect(await changedBy(reload(() => configOf('a')))).toEqual(['a'])
    expect(log).toEqual(['prepare a', 'commit a', 'reloaded a'])
  })

  it('reports every fault of what cannot be loaded or prepared, and goes on with the next', async () => {
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
      'refused one first,two second',
      'refused ADP_INTERNAL The reload failed.',
      'prepare b',
      'refused ADP_JOURNAL_UNAVAILABLE Not now.',
      'prepare c',
      'commit c',
      'reloaded c',
    ])
  })

  it('runs what was asked for during a reload once after it, with the last of them', async () => {
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
    expect(log.filter((line) => line.startsWith('prepare'))).toEqual(['prepare a', 'prepare d'])
    expect(await changedBy(reload(() => configOf('e')))).toEqual(['e'])
  })
})
