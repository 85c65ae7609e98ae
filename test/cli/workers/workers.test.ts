import { describe, expect, it, test } from 'vitest'

import { createRestartDelay, createWorkersConfig, type ReloadPeer } from '../../../src/cli/workers.ts'
import { type Config, type PackedConfig, parseConfig, unpackConfig } from '../../../src/config/index.ts'
import { AdapterError } from '../../../src/errors.ts'

function configOf(id: string): Config {
  return parseConfig({
    upstreams: { v3: { baseUrl: 'https://v3.test' } },
    partners: [{ id, match: { any: true } }],
  })
}

const refusal = new AdapterError('ADP_CONFIGURATION', 'no', { details: [{ code: 'reload', message: 'why' }] })

/** Creates the configuration of workers. `log` lists the calls to workers, such as `2 reload b` for a file with the partner b. */
function start() {
  const log: string[] = []
  const config = createWorkersConfig(configOf('a'), 5)
  const given = (id: number, what: string, packed: unknown): void =>
    void log.push(`${id} ${what} ${unpackConfig(packed as PackedConfig).partners[0]?.id}`)
  /** Creates a worker that answers a reload with `answer`. */
  const worker = (id: number, answer: () => Promise<unknown> = () => Promise.resolve()): ReloadPeer => {
    const call = async (name: string, packed: unknown): Promise<never> => {
      given(id, name, packed)
      return answer() as Promise<never>
    }
    const own = { id, call, kill: (signal: string) => void log.push(`${id} ${signal}`) } as ReloadPeer
    given(id, 'config', config.configFor(own))
    return own
  }
  const reload = (id: string) => config.apply(configOf(id))
  return { log, config, worker, reload }
}

const refuse = (): Promise<never> => Promise.reject(refusal)
const never = (): Promise<never> => Promise.withResolvers<never>().promise

describe('a reload of workers', () => {
  it('changes nothing if the first worker refuses the configuration', async () => {
    const { log, config, worker, reload } = start()
    const refusing = worker(1, refuse)
    worker(2)
    await expect(reload('b')).rejects.toBe(refusal)
    config.remove(refusing)
    worker(3)
    await reload('c')
    expect(log).toEqual(['1 config a', '2 config a', '1 reload b', '3 config a', '2 reload c', '3 reload c'])
  })

  it('ends a worker that does not answer, or that refuses a configuration that another worker has applied', async () => {
    const { log, worker, reload } = start()
    worker(1, never)
    worker(2)
    worker(3, refuse)
    worker(4)
    await reload('b')
    await reload('c')
    worker(5)
    expect(log.filter((line) => !line.endsWith('config a'))).toEqual([
      ...['1 reload b', '1 SIGKILL', '2 reload b', '3 reload b', '3 SIGTERM', '4 reload b'],
      ...['2 reload c', '4 reload c', '5 config c'],
    ])
  })

  it('also reloads a worker that starts during the reload, and fails if no worker answers at all', async () => {
    const { log, worker, reload } = start()
    worker(1, () => {
      worker(2)
      return Promise.resolve()
    })
    await reload('b')
    expect(log).toEqual(['1 config a', '1 reload b', '2 config a', '2 reload b'])
    const alone = start()
    alone.worker(1, never)
    await expect(alone.reload('b')).rejects.toThrow('No worker answered')
  })

  it('is refused without a message to any worker if the change needs a restart', async () => {
    const { log, config, worker } = start()
    worker(1)
    const elsewhere = parseConfig({ upstreams: { v3: { baseUrl: 'https://other.test' } } })
    await expect(config.apply(elsewhere)).rejects.toThrow('upstreams.v3.baseUrl')
    expect(log).toEqual(['1 config a'])
  })
})

test('the delay before a worker is replaced grows as long as workers end within a minute after their start', () => {
  const delayAfter = createRestartDelay()
  const ages = [5, 5, 5, 5, 5, 5, 5, 5, 5, 59_999, 60_000, 5]
  expect(ages.map((livedMs) => delayAfter(livedMs))).toEqual([
    100, 200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000, 10_000, 100, 200,
  ])
})
