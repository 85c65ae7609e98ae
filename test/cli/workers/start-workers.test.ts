import { describe, expect, it, test } from 'vitest'

import {
  createRestartDelay,
  createWorkersConfig,
  type ReloadPeer,
} from '../../../src/cli/workers/start-workers.ts'
import { type Config, type PackedConfig, parseConfig, unpackConfig } from '../../../src/config/index.ts'
import { AdapterError } from '../../../src/errors.ts'

function configOf(id: string): Config {
  return parseConfig({
    upstreams: { v3: { baseUrl: 'https://v3.test' } },
    partners: [{ id, match: { any: true } }],
  })
}

const refusal = new AdapterError('ADP_CONFIGURATION', 'no', { details: [{ code: 'reload', message: 'why' }] })

/** What workers are called for, in order: `2 prepare b` for the partner of a configuration. */
function start(prepareMs?: number) {
  const log: string[] = []
  const config = createWorkersConfig(configOf('a'), prepareMs)
  const given = (id: number, what: string, packed: unknown): void =>
    void log.push(`${id} ${what} ${unpackConfig(packed as PackedConfig).partners[0]?.id}`)
  /** A worker that prepares as it is told. */
  const worker = (id: number, prepare: () => Promise<unknown> = () => Promise.resolve()): ReloadPeer => {
    const call = async (name: string, ...args: readonly unknown[]): Promise<never> => {
      if (name === 'prepare') given(id, name, args[1])
      else log.push(`${id} ${name}`)
      return (name === 'prepare' ? prepare() : Promise.resolve()) as Promise<never>
    }
    const own = { id, call }
    void config.configFor(own).then((packed) => given(id, 'config', packed))
    return own
  }
  const reload = async (id: string): Promise<void> => {
    await (await config.prepare(configOf(id))).commit()
    await Promise.resolve()
  }
  return { log, config, worker, reload }
}

const never = (): Promise<never> => Promise.withResolvers<never>().promise

describe('workers that change together', () => {
  it('all prepare, then all commit', async () => {
    const { log, worker, reload } = start()
    worker(1)
    worker(2)
    await reload('b')
    expect(log.filter((line) => !line.includes('config'))).toEqual([
      '1 prepare b',
      '2 prepare b',
      '1 commit',
      '2 commit',
    ])
  })

  it('do not commit where one refuses, and the next reload goes on from the same', async () => {
    const { log, config, worker, reload } = start()
    const refusing = worker(1, () => Promise.reject(refusal))
    worker(2)
    await expect(config.prepare(configOf('b'))).rejects.toBe(refusal)
    config.remove(refusing)
    worker(3)
    await reload('c')
    expect(log).toEqual(expect.arrayContaining(['3 config a', '3 prepare c', '3 commit']))
    expect(log).not.toContain('1 commit')
  })

  it('do not commit where one does not answer, and give one that starts meanwhile what the others have after it', async () => {
    const { log, config, worker, reload } = start(5)
    const silent = worker(1, never)
    const reloading = config.prepare(configOf('b'))
    worker(2)
    await expect(reloading).rejects.toThrow(
      'Worker 1 did not answer in time, so no worker took the configuration.',
    )
    config.remove(silent)
    const { promise, resolve } = Promise.withResolvers<undefined>()
    worker(3, () => promise)
    const taken = reload('c')
    worker(4)
    resolve(undefined)
    await taken
    expect(log.filter((line) => /config|commit/.test(line)).toSorted()).toEqual([
      '1 config a',
      '2 commit',
      '2 config a',
      '3 commit',
      '3 config a',
      '4 config c',
    ])
  })

  it('do not wait for one that ended before it had a configuration', async () => {
    const { config, worker, reload } = start(5)
    const { promise, resolve } = Promise.withResolvers<undefined>()
    worker(1, () => promise)
    const taken = reload('b')
    config.remove(worker(2, never))
    resolve(undefined)
    await taken
    await expect(reload('c')).resolves.toBeUndefined()
  })

  it('refuse what needs a restart before any is asked', async () => {
    const { log, config, worker } = start()
    worker(1)
    const elsewhere = parseConfig({ upstreams: { v3: { baseUrl: 'https://other.test' } } })
    await expect(config.prepare(elsewhere)).rejects.toThrow('upstreams.v3.baseUrl')
    expect(log).toEqual(['1 config a'])
  })
})

test('a worker is replaced at once, then later and later while they end young', () => {
  const delayAfter = createRestartDelay()
  const ages = [5, 5, 5, 5, 5, 5, 5, 5, 5, 59_999, 60_000, 5]
  expect(ages.map((livedMs) => delayAfter(livedMs))).toEqual([
    100, 200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000, 10_000, 100, 200,
  ])
})
