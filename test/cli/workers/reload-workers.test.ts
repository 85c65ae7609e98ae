import { describe, expect, it } from 'vitest'

import type { FromPrimary } from '../../../src/cli/workers/messages.ts'
import {
  createWorkersConfig,
  type ReloadPeer,
  type WorkersConfig,
} from '../../../src/cli/workers/reload-workers.ts'
import { type Config, parseConfig, unpackConfig } from '../../../src/config/index.ts'

function configOf(id: string): Config {
  return parseConfig({
    upstreams: { v3: { baseUrl: 'https://v3.test' } },
    partners: [{ id, match: { any: true } }],
  })
}

/** What is told to workers, in order: `2 prepare b` for the partner of a configuration. */
function start(prepareMs?: number) {
  const log: string[] = []
  const config = createWorkersConfig(configOf('a'), prepareMs)
  const textOf = (message: FromPrimary): string =>
    'config' in message ? `${message.kind} ${unpackConfig(message.config).partners[0]?.id}` : message.kind
  const peer = (id: number, onPrepare: 'prepares' | 'refuses' | 'isSilent' = 'prepares'): ReloadPeer => {
    const own: ReloadPeer = {
      id,
      send: (message) => {
        log.push(`${id} ${textOf(message)}`)
        if (message.kind === 'prepare' && onPrepare !== 'isSilent') {
          const error = {
            code: 'ADP_CONFIGURATION',
            message: 'no',
            details: [{ code: 'reload', message: 'why' }],
          } as const
          queueMicrotask(() =>
            config.onMessage(own, {
              kind: 'prepared',
              reload: message.reload,
              ...(onPrepare === 'refuses' ? { error } : {}),
            }),
          )
        }
        if (message.kind === 'commit')
          queueMicrotask(() => config.onMessage(own, { kind: 'committed', reload: message.reload }))
      },
    }
    config.onMessage(own, { kind: 'askConfig' })
    return own
  }
  return { log, config, peer }
}

async function reload(config: WorkersConfig, id: string): Promise<void> {
  await (await config.prepare(configOf(id))).commit()
}

describe('workers that change together', () => {
  it('all prepare, then all commit', async () => {
    const { log, config, peer } = start()
    peer(1)
    peer(2)
    await reload(config, 'b')
    expect(log).toEqual(['1 config a', '2 config a', '1 prepare b', '2 prepare b', '1 commit', '2 commit'])
  })

  it('do not commit where one refuses, and the next reload goes on from the same', async () => {
    const { log, config, peer } = start()
    const refusing = peer(1, 'refuses')
    peer(2)
    await expect(config.prepare(configOf('b'))).rejects.toMatchObject({
      code: 'ADP_CONFIGURATION',
      details: [{ message: 'why' }],
    })
    config.onEnd(refusing)
    peer(3)
    await reload(config, 'c')
    expect(log.slice(2)).toEqual([
      '1 prepare b',
      '2 prepare b',
      '3 config a',
      '2 prepare c',
      '3 prepare c',
      '2 commit',
      '3 commit',
    ])
  })

  it('do not commit where one ends, or does not answer', async () => {
    const { log, config, peer } = start(5)
    peer(1)
    const silent = peer(2, 'isSilent')
    const reloading = config.prepare(configOf('b'))
    config.onEnd(silent)
    await expect(reloading).rejects.toThrow('Worker 2 ended, so no worker took the configuration.')
    peer(3, 'isSilent')
    await expect(config.prepare(configOf('c'))).rejects.toThrow('Worker 3 did not answer in time')
    expect(log.filter((line) => line.includes('commit'))).toEqual([])
  })

  it('give one that starts during a reload what the others have after it', async () => {
    const { log, config, peer } = start()
    const first = peer(1, 'isSilent')
    const taken = config.prepare(configOf('b'))
    peer(2)
    config.onMessage(first, { kind: 'prepared', reload: 1 })
    const prepared = await taken
    peer(3)
    await prepared.commit()
    const refused = config.prepare(configOf('c'))
    peer(4)
    config.onEnd(first)
    await expect(refused).rejects.toThrow('Worker 1 ended')
    expect(log.filter((line) => line.includes('config'))).toEqual([
      '1 config a',
      '2 config b',
      '3 config b',
      '4 config b',
    ])
  })

  it('refuse what needs a restart before any is asked', async () => {
    const { log, config, peer } = start()
    peer(1)
    const elsewhere = parseConfig({ upstreams: { v3: { baseUrl: 'https://other.test' } } })
    await expect(config.prepare(elsewhere)).rejects.toThrow('upstreams.v3.baseUrl')
    expect(log).toEqual(['1 config a'])
  })
})
