import { describe, expect, it } from 'vitest'

import { journalKeysOf, journalUrlOf, parseConfig, Secret } from '../../src/config/index.ts'
import { printConfig } from '../../src/config/yaml.ts'
import { faultsOf, upstreams } from './faults.ts'

const badUrl =
  'journal.url: must be sqlite:<file>, postgres://<user>:<password>@<host>/<database> or none; characters such as / @ : ? # and % in the user or password have to be percent-encoded (/ as %2F, @ as %40)'

describe('the journal section of the configuration', () => {
  it.each([
    [{ url: 'none' }, []],
    [{ url: 'sqlite:/var/lib/journal.db' }, []],
    [{ url: new Secret('sqlite:./x.db') }, []],
    [{ url: 'postgres://db.test/markbridge' }, []],
    [{ url: 'postgresql://u:hush@db.test:5433/markbridge?sslmode=require' }, []],
    [{ url: 'postgres://' }, [badUrl]],
    [{ url: './x.db' }, [badUrl]],
    [{ url: 'sqlite::memory:' }, [badUrl]],
    [{ url: 'sqlite:' }, [badUrl]],
    [{ keepRecordsMs: 1_000 }, ['journal.keepRecordsMs: must not be shorter than replayForMs']],
    [
      { leaseMs: 999 },
      [
        'journal.leaseMs: is not a key of the configuration; known keys: url, keys, replayForMs, keepRecordsMs, stateDir',
      ],
    ],
    [{ url: 'postgres://db.test/m', stateDir: '/var/lib/markbridge' }, []],
    [
      { stateDir: 'x' },
      [
        'journal.stateDir: applies only to a PostgreSQL journal. An SQLite journal stores the high-water file and the stage file beside the database',
      ],
    ],
    [{ keys: [{ id: 'plaintext' }] }, []],
    [{ keys: [{ id: 'clear' }] }, ['journal.keys[0].key: is required']],
    [
      { keys: [{ id: 'a', key: 'in clear' }] },
      ['journal.keys[0].key: must be { env: NAME } or { file: path }, never the key itself'],
    ],
    [
      { keys: [{ id: 'a', key: new Secret('short') }] },
      ['journal.keys[0].key: must be 32 bytes: 64 hexadecimal digits, or base64'],
    ],
    [
      { keys: ['a', 'a'].map((id) => ({ id, key: new Secret('0'.repeat(64)) })) },
      ['journal.keys[1].id: is already the id of journal.keys[0]'],
    ],
  ])('reports, for the section %j, the faults %j', (journal, faults) => {
    expect(faultsOf({ upstreams, journal })).toEqual(faults)
  })

  it.each(['postgres://u:hush@db.test/m', 'postgres://db.test/m?user=u&password=hush'])(
    'never prints the password of a journal URL: %s',
    (url) => {
      const config = parseConfig({ upstreams, journal: { url } })
      expect(journalUrlOf(config.journal)).toBe(url)
      expect(printConfig(config)).not.toContain('hush')
    },
  )

  it('reads keys in hexadecimal and in base64, and never prints them', () => {
    const bytes = Buffer.from('0123456789abcdef0123456789ABCDEF')
    const keys = (['hex', 'base64'] as const).map((form) => ({
      id: form,
      key: new Secret(bytes.toString(form)),
    }))
    const config = parseConfig({ upstreams, journal: { url: new Secret('sqlite:./secret.db'), keys } })
    expect(journalKeysOf(config.journal)).toEqual([
      { id: 'hex', key: bytes },
      { id: 'base64', key: bytes },
    ])
    expect(journalUrlOf(config.journal)).toBe('sqlite:./secret.db')
    const printed = printConfig(config)
    for (const secret of [bytes.toString('hex'), bytes.toString('base64'), 'secret.db'])
      expect(printed).not.toContain(secret)
  })
})
