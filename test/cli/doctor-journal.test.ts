import { execFileSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { chownSync, existsSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { Client } from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { openJournal } from '../../src/journal/index.ts'
import { batchOf } from '../journal/batches.ts'
import { makeFolder } from '../journal/open-sqlite.ts'
import { eachDatabase } from '../support/each-database.ts'
import { findProgram } from '../support/find-program.ts'
import { missingPostgres, startPostgres, type TestPostgres } from '../support/start-postgres.ts'
import { runCommand } from './run-command.ts'

interface Check {
  readonly check: string
  readonly result: string
  readonly message: string
}

const [own, other] = ['ab', 'cd'].map((byte) => byte.repeat(32)) as [string, string]

/** Runs doctor on a configuration with this journal, and returns its findings about the journal. */
async function examine(journal: object) {
  const path = join(await makeFolder(), 'own.yaml')
  writeFileSync(path, JSON.stringify({ upstreams: { v3: { baseUrl: 'http://127.0.0.1:1' } }, journal }))
  const env = { OWN_KEY: own, OTHER_KEY: other, MARKBRIDGE_LOG_LEVEL: 'silent' }
  const { stdout } = await runCommand(['doctor', '--config', path, '--json'], env)
  const { checks } = JSON.parse(stdout) as { checks: readonly Check[] }
  return { path, env, checks, found: checks.filter(({ check }) => check === 'journal') }
}

/** Examines a journal with doctor and serve, and returns the message that both print. */
async function refused(journal: object): Promise<string> {
  const { path, env, found } = await examine(journal)
  expect(found).toMatchObject([{ result: 'fails' }])
  const served = await runCommand(['serve', '--config', path, '--port', '0'], env)
  expect([1, 2]).toContain(served.status)
  expect(served.stderr).toContain(found[0]?.message)
  return found[0]?.message ?? ''
}

const keyed = (id: string, env: string): object => ({ keys: [{ id, key: { env } }] })

describe.each(eachDatabase())('the check of a journal in %s by doctor and serve', (_name, database) => {
  database.test('accepts the key with which the journal was written, and no other key', async (url) => {
    const journal = await openJournal({ url, keys: [{ id: 'k1', key: Buffer.from(own, 'hex') }] })
    await journal.begin(batchOf(['a']))
    await journal.close()
    expect((await examine({ url, ...keyed('k1', 'OWN_KEY') })).found).toEqual([
      { check: 'journal', result: 'ok', message: 'the journal can be read, and its balances add up' },
    ])
    expect(await refused({ url, ...keyed('k1', 'OTHER_KEY') })).toContain('a different key under the id k1.')
    expect(await refused({ url })).toContain('k1')
  })

  database.test(
    'reports no fault for a journal that does not exist yet, which doctor does not create',
    async (url) => {
      for (let count = 0; count < 2; count += 1) {
        const { found } = await examine({ url, ...keyed('k1', 'OWN_KEY') })
        expect(found).toMatchObject([{ result: 'ok', message: expect.stringContaining('serve') as unknown }])
      }
      expect(existsSync(url.slice('sqlite:'.length))).toBe(false)
    },
  )
})

describe.skipIf(missingPostgres() !== undefined)(
  'the check of a PostgreSQL journal by doctor and serve',
  () => {
    let postgres: TestPostgres
    let url: string
    const weak = `weak_${randomUUID().replaceAll('-', '')}`
    beforeAll(async () => {
      postgres = await startPostgres()
      url = await postgres.createDatabase()
      await query(`create role ${weak} login password '${weak}'`)
      await query('revoke create on schema public from public')
    })
    afterAll(async () => {
      await query(`drop role ${weak}`)
      await postgres.close()
    })
    const query = async (text: string): Promise<Record<string, unknown> | undefined> => {
      const client = new Client({ connectionString: url })
      await client.connect()
      const { rows } = await client.query<Record<string, unknown>>(text)
      await client.end()
      return rows[0]
    }
    const changed = (change: (address: URL) => void): string => {
      const address = new URL(url)
      change(address)
      return address.href
    }
    const withParameter = (name: string, value: string): string =>
      changed(({ searchParams }) => searchParams.set(name, value))

    test.each<[why: string, address: () => string, message: RegExp]>([
      [
        'no password',
        () => changed((one) => (one.password = '')),
        /asks for a password, and journal\.url has none\. .*Add it/,
      ],
      [
        'a wrong password',
        () => changed((one) => (one.password = 'wrong')),
        /rejects the password of the user\. .*Correct the user/,
      ],
      [
        'a missing database',
        () => changed((one) => (one.pathname = '/none')),
        /the database does not exist\. .*createdb/,
      ],
      [
        'a closed port',
        () => changed((one) => (one.port = '1')),
        /no server listens at this address.*listen_addresses/,
      ],
      [
        'missing rights',
        () => changed((one) => Object.assign(one, { username: weak, password: weak })),
        /denies the user access to the tables.*grant/,
      ],
      [
        'an unknown connection parameter',
        () => withParameter('options', '-c nonsense=1'),
        /parameter of the connection \(42704\).*options/,
      ],
      [
        'an invalid value of a connection parameter',
        () => withParameter('options', '-c work_mem=much'),
        /parameter of the connection \(22023\).*options/,
      ],
      ['a server without TLS', () => withParameter('sslmode', 'require'), /offers no TLS.*postgresql\.conf/],
      [
        'a missing certificate file',
        () => withParameter('sslrootcert', '/nowhere/ca.pem'),
        /The file \/nowhere\/ca\.pem that the parameter sslrootcert of journal\.url names cannot be read: no such file/,
      ],
    ])('prints the cause and writes nothing if the cause is %s', async (_why, address, message) => {
      const text = await refused({ url: address() })
      expect(text).toMatch(message)
      expect(text).toContain('Nothing was written.')
      expect(text).not.toMatch(/adopt|markbridge@|weak_|wrong@/)
    })

    test.skipIf(findProgram('openssl') === undefined)(
      "prints that the server's certificate is not trusted",
      async ({ skip }) => {
        if (postgres.server === undefined) return skip()
        const folder = String((await query('show data_directory'))?.['data_directory'])
        const names = ['-subj', '/CN=database', '-addext', 'subjectAltName=IP:127.0.0.1']
        const files = ['-keyout', 'server.key', '-out', 'server.crt', '-days', '9']
        execFileSync('openssl', ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', ...files, ...names], {
          cwd: folder,
          stdio: 'pipe',
        })
        const { uid, gid } = statSync(folder)
        for (const name of ['server.key', 'server.crt']) chownSync(join(folder, name), uid, gid)
        await query('alter system set ssl = on')
        await query('select pg_reload_conf()')
        const text = await refused({ url: withParameter('sslmode', 'verify-full') })
        expect(text).toMatch(
          /the certificate of the server is not trusted \(DEPTH_ZERO_SELF_SIGNED_CERT\).*sslrootcert=<file>/,
        )
        const trusted = changed(({ searchParams }) => {
          searchParams.set('sslmode', 'verify-full')
          searchParams.set('sslrootcert', join(folder, 'server.crt'))
        })
        expect((await examine({ url: trusted })).found).toMatchObject([{ result: 'ok' }])
      },
    )

    test('prints that the folder of journal.stateDir cannot be used, whether V2 has an address or not', async () => {
      const folder = await makeFolder()
      const file = join(folder, 'file')
      writeFileSync(file, '')
      const stateDir = join(file, 'state')
      const { path, env, checks } = await examine({ url, stateDir })
      expect(checks).toContainEqual(
        expect.objectContaining({
          check: 'permissions',
          result: 'fails',
          message: `${file} is not a folder`,
        }),
      )
      for (const more of [[], ['--v2', 'http://127.0.0.1:1']]) {
        const { status, stderr } = await runCommand(['serve', '--config', path, '--port', '0', ...more], env)
        expect([status, stderr]).toEqual([
          2,
          expect.stringContaining(`${stateDir}/journal.mark cannot be read or written`),
        ])
      }
    })

    test('accepts a missing folder of journal.stateDir, which the journal creates when it opens', async () => {
      const stateDir = join(await makeFolder(), 'not', 'there')
      const { checks } = await examine({ url, stateDir })
      expect(checks).toContainEqual(
        expect.objectContaining({ message: `${stateDir} does not exist yet; serve creates it` }),
      )
      const journal = await openJournal({ url, highWaterFile: join(stateDir, 'journal.mark') })
      await journal.close()
      expect(existsSync(join(stateDir, 'journal.mark'))).toBe(true)
    })
  },
)
