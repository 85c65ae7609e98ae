import { chmod, readFile, stat, writeFile } from 'node:fs/promises'
import { once } from 'node:events'
import type { RequestListener } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { getCACertificates, setDefaultCACertificates, type TlsOptions } from 'node:tls'

import { afterAll, beforeAll, describe, expect, it, onTestFinished, test } from 'vitest'

import { createSelfSigned } from '../../src/cli/self-signed.ts'
import { loadConfig } from '../../src/config/index.ts'
import { createSandbox } from '../../src/sandbox/index.ts'
import { makeFolder } from '../journal/open-sqlite.ts'
import { createAuthority } from '../support/create-authority.ts'
import { findProgram } from '../support/find-program.ts'
import { replyWith, startUpstream } from '../support/scripted-upstream.ts'
import { startProxy } from '../support/start-proxy.ts'
import type { CliResult } from './run-cli.ts'
import { runCommand } from './run-command.ts'

const sandbox = createSandbox({ port: 0, v2Port: 0 })
let v3: string
let v2: string
beforeAll(async () => {
  ;({ url: v3, v2Url: v2 } = await sandbox.listen())
})
afterAll(() => sandbox.close())

interface Check {
  readonly check: string
  readonly result: string
  readonly message: string
  readonly remedy?: string
}

/** Runs doctor on a configuration whose journal is in a folder of its own. */
async function doctor(values: object): Promise<{ status: number; checks: readonly Check[] }> {
  const folder = await makeFolder()
  const path = join(folder, 'markbridge.yaml')
  await writeFile(path, JSON.stringify({ journal: { url: `sqlite:${folder}/journal.db` }, ...values }))
  const { status, stdout } = await runCommand(['doctor', '--config', path, '--json'])
  return { status, checks: (JSON.parse(stdout) as { checks: readonly Check[] }).checks }
}

const init = (out: string, ...args: string[]): Promise<CliResult> =>
  runCommand(['init', '--out', out, '--json', ...args])

test('init asks for each value that no flag gives, and writes a file that passes doctor', async () => {
  const out = join(await makeFolder(), 'markbridge.yaml')
  const flags = ['--v3', v3, '--subscription-key', 'env:ACME_V2_KEY']
  const answers = `not an id\nacme\n${v2}\n`
  const written = await runCommand(['init', '--out', out, ...flags], { ACME_V2_KEY: 'sandbox' }, answers)
  expect([written.status, written.stdout]).toEqual([
    0,
    `${out} is written for the partner acme. Next:\n  markbridge doctor --config ${out}\n  markbridge serve --config ${out}\n`,
  ])
  expect(written.stderr).toMatch(/Name of the partner \[acme\]: \nThe value must be 1 to 63 letters.*\n/)
  const { partners, upstreams } = await loadConfig(out)
  expect(partners).toMatchObject([{ id: 'acme', stage: 'legacy' }])
  expect(upstreams.v2?.baseUrl.href).toBe(`${v2}/`)
  expect(await readFile(out, 'utf8')).toMatch(/subscriptionKeySha256: [0-9a-f]{64} /)
  const text = (await readFile(out, 'utf8')).replace('./data/journal.db', `${out}.db`)
  await writeFile(out, text)
  const examined = await runCommand(['doctor'], { MARKBRIDGE_CONFIG: out })
  expect([examined.status, examined.stdout]).toEqual([0, expect.stringContaining('Nothing fails.')])
  expect(examined.stdout).toMatch(/^ok +read of V2 for acme: /m)
  expect(examined.stdout).toMatch(/^ok +read of V3 for acme: /m)
  expect(examined.stdout).toMatch(
    /^ok +address of V3: the clock of the service agrees with the clock of this machine$/m,
  )
})

test('init asks again for a key that cannot be read, and fails at once if a flag names such a key', async () => {
  const out = join(await makeFolder(), 'own.yaml')
  const flags = ['init', '--out', out, '--partner', 'beta', '--v3', v3, '--v2', '']
  const asked = await runCommand(flags, { BETA_KEY: 'secret' }, 'secret\nenv:NO_SUCH_KEY\nenv:BETA_KEY\n')
  expect(asked.status).toBe(0)
  expect(asked.stderr).toContain('The answer does not name the source of a key')
  expect(asked.stderr).toContain('env:NO_SUCH_KEY is not set')
  expect(asked.stdout + asked.stderr).not.toContain('secret')
  expect(await readFile(out, 'utf8')).toMatch(/subscriptionKeySha256: [0-9a-f]{64} /)
  const given = await runCommand(['init', '--out', `${out}.2`, '--subscription-key', 'secret'])
  expect(given).toMatchObject({ status: 2, stdout: '' })
  expect(given.stderr).toContain('--subscription-key does not name the source of a key')
  expect(given.stderr).not.toContain('secret')
})

test('init replaces an existing file only with --force', async () => {
  const out = join(await makeFolder(), 'own.yaml')
  const flags = ['--partner', 'beta', '--v3', v3, '--v2', '', '--subscription-key', '']
  expect((await init(out, ...flags)).status).toBe(0)
  await writeFile(out, 'own')
  expect(await init(out, ...flags)).toMatchObject({
    status: 2,
    stderr: expect.stringContaining(
      'exists already. Nothing was written. Name another file, or add the partner with --add, or replace the file with --force',
    ) as unknown,
  })
  expect(await readFile(out, 'utf8')).toBe('own')
  const forced = await init(out, ...flags, '--force')
  expect(JSON.parse(forced.stdout)).toEqual({ file: out, partner: 'beta', stage: 'v3' })
  expect((await stat(out)).mode & 0o777).toBe(0o600)
})

const addBeta = (out: string, ...args: string[]): Promise<CliResult> =>
  runCommand(
    ['init', '--add', '--out', out, '--partner', 'beta', '--subscription-key', 'env:BETA_KEY', ...args],
    { BETA_KEY: 'secret' },
  )

test.each([
  [
    'at the end of the list',
    '  - id: acme # first\n    match: { header: { name: x, value: { env: NOT_SET } } }\n\n    # v3: {}\n',
    ['acme', 'beta'],
  ],
  [
    'before a partner with any key, whose comment stays above that partner',
    '# all\n- id: acme\n  match: { pathPrefix: /acme }\n# the rest\n- id: rest\n  match: { any:   true } #  every key',
    ['acme', 'beta', 'rest'],
  ],
  [
    'in a list on one line',
    " [{ id: acme, match: { pathPrefix: '/-' } }, # c\n  { id: rest, match: { any: true } } ]",
    ['acme', 'beta', 'rest'],
  ],
])('init --add adds a partner %s, and changes nothing else in the file', async (_, partners, ids) => {
  const out = join(await makeFolder(), 'markbridge.yaml')
  const text = `# the file\nupstreams:\n    v3:   {baseUrl: '${v3}'}   # V3\npartners:${partners.startsWith(' [') ? '' : '\n'}${partners}`
  await writeFile(out, text, { mode: 0o640 })
  const added = await addBeta(out, '--v2', v2, '--json')
  expect([added.stderr, JSON.parse(added.stdout)]).toEqual([
    '',
    { file: out, partner: 'beta', stage: 'legacy' },
  ])
  const loaded = await loadConfig(out, {}, { secretsOf: [] })
  expect(loaded.partners.map(({ id }) => id)).toEqual(ids)
  expect(loaded.partners.find(({ id }) => id === 'beta')).toMatchObject({
    match: { subscriptionKeySha256: [expect.stringMatching(/^[0-9a-f]{64}$/) as unknown] },
    v2: { baseUrl: new URL(v2) },
  })
  const after = await readFile(out, 'utf8')
  const head = Array.from(text).findIndex((char, at) => char !== after[at])
  const begin = head === -1 ? text.length : head
  expect(after.slice(0, begin) + after.slice(after.length - text.length + begin)).toBe(text)
  expect((await stat(out)).mode & 0o777).toBe(0o640)
})

test('init --add changes nothing if the file already has the id, has faults or has no partners', async () => {
  const out = join(await makeFolder(), 'markbridge.yaml')
  const flags = ['--partner', 'beta', '--v3', v3, '--v2', '', '--subscription-key', '']
  expect((await init(out, ...flags)).status).toBe(0)
  const text = await readFile(out, 'utf8')
  expect(await addBeta(out)).toMatchObject({
    status: 2,
    stderr: expect.stringContaining('is already the id of partners[0]') as unknown,
  })
  expect((await addBeta(out, '--force')).status).toBe(2)
  expect(await readFile(out, 'utf8')).toBe(text)
  for (const other of ['partners: 1\n', `upstreams: { v3: { baseUrl: '${v3}' } }\n`]) {
    await writeFile(out, other)
    expect((await addBeta(out)).status).toBe(2)
    expect(await readFile(out, 'utf8')).toBe(other)
  }
})

test('doctor reports a failed connection and a failed read if nothing listens at the address of V3', async () => {
  const { status, checks } = await doctor({ upstreams: { v3: { baseUrl: 'http://127.0.0.1:1' } } })
  expect(status).toBe(1)
  expect(checks.filter(({ result }) => result === 'fails')).toEqual([
    {
      ...{ check: 'address of V3', result: 'fails' },
      message: 'http://127.0.0.1:1/ cannot be reached: no server listens at this address (ECONNREFUSED)',
      remedy: 'Check the address, the firewall and the proxy, and whether the service runs.',
    },
    { check: 'read of V3 for default', result: 'fails', message: 'V3 was not available.' },
  ])
})

test.each([
  [-5, 'warning', /^the clock of the service is \d+ s behind the clock of this machine$/],
  [90, 'fails', /^the clock of the service is \d+ s ahead of the clock of this machine$/],
])(
  'doctor reports with the result "$1" that the clock of V3 differs by $0 s',
  async (seconds, result, message) => {
    const { url: baseUrl } = await startUpstream((seen, response) =>
      replyWith(401, {}, { date: new Date(Date.now() + seconds * 1_000).toUTCString() })(seen, response),
    )
    const { status, checks } = await doctor({ upstreams: { v3: { baseUrl } } })
    expect(status).toBe(1)
    expect(checks.find(({ message: own }) => own.startsWith('the clock'))).toMatchObject({
      result,
      message: expect.stringMatching(message) as unknown,
    })
    expect(checks.find(({ check }) => check === 'read of V3 for default')).toMatchObject({
      result: 'fails',
      message: expect.stringContaining('V3 rejected the credentials (401)') as unknown,
    })
  },
)

test('doctor says that the reply has no error code if V3 answers 400 without JSON', async () => {
  const { url: baseUrl } = await startUpstream(replyWith(400, 'no JSON'))
  const { checks } = await doctor({ upstreams: { v3: { baseUrl } } })
  expect(checks.find(({ check }) => check === 'read of V3 for default')).toMatchObject({
    result: 'fails',
    message: expect.stringContaining('has no error code') as unknown,
  })
})

const LOOPBACK = 'IP:127.0.0.1'
const AUTHORITY_MISSING =
  'Set upstreams.*.tls.ca (or NODE_EXTRA_CA_CERTS) to the certificate of the authority that issued it, or use another address.'

test.skipIf(findProgram('openssl') === undefined)(
  'doctor prints the fault of a TLS certificate and how to mend it',
  async () => {
    const authority = createAuthority(await makeFolder())
    /** Returns the finding about the certificate or, if the server was not reached, the first finding about the address. */
    const examine = async (host: string, fromDays: number, toDays: number) => {
      const server = createTlsServer(authority.issue(host, fromDays, toDays), (_, reply) =>
        reply.writeHead(401).end('{}'),
      ).listen(0, '127.0.0.1')
      await new Promise((resolve) => server.once('listening', resolve))
      const { port } = server.address() as AddressInfo
      const { checks } = await doctor({ upstreams: { v3: { baseUrl: `https://127.0.0.1:${port}` } } })
      server.close()
      const own = checks.filter(({ check }) => check === 'address of V3')
      const found = own.find(({ message }) => message.startsWith('its certificate')) ?? own[0]
      return [found?.result, found?.message.replace(/^.* cannot be reached: /, ''), found?.remedy]
    }
    const expired = ['fails', 'the certificate of the server has expired (CERT_HAS_EXPIRED)']
    expect(await examine(LOOPBACK, -1, 90)).toEqual([
      'fails',
      'the certificate of the server is not trusted (UNABLE_TO_VERIFY_LEAF_SIGNATURE)',
      AUTHORITY_MISSING,
    ])
    expect((await examine(LOOPBACK, -9, -2)).slice(0, 2)).toEqual(expired)
    // Trusts the authority as NODE_EXTRA_CA_CERTS does, which Node.js reads only when a process starts.
    const before = getCACertificates('default')
    setDefaultCACertificates([...before, authority.certificate])
    onTestFinished(() => setDefaultCACertificates(before))
    expect(await examine(LOOPBACK, -1, 90)).toEqual([
      'ok',
      'its certificate is trusted and expires in 89 days',
      undefined,
    ])
    expect(await examine(LOOPBACK, -1, 5)).toEqual([
      'warning',
      'its certificate is trusted and expires in 4 days',
      'Ask the operator of the service to renew the certificate.',
    ])
    expect(await examine(LOOPBACK, -9, -2)).toEqual([
      ...expired,
      'Check the clock of this machine. If the clock is right, ask the operator of the service to renew the certificate.',
    ])
    expect(await examine(LOOPBACK, 2, 90)).toEqual([
      'fails',
      'the certificate of the server is not valid yet (CERT_NOT_YET_VALID)',
      'Check the clock of this machine. If the clock is right, tell the operator of the service.',
    ])
    expect(await examine('DNS:service.example', -1, 90)).toEqual([
      'fails',
      'the certificate of the server is for another host (ERR_TLS_CERT_ALTNAME_INVALID)',
      'Use the host name of the certificate in the address, or ask the operator of the service to replace the certificate.',
    ])
  },
)

test('doctor fails if the server at an https address has no TLS', async () => {
  const baseUrl = (await startUpstream(replyWith(200, {}))).url.replace('http:', 'https:')
  const { checks } = await doctor({ upstreams: { v3: { baseUrl } } })
  expect(checks.find(({ check }) => check === 'address of V3')).toMatchObject({
    result: 'fails',
    message: expect.stringContaining('the server does not use TLS') as unknown,
    remedy: 'Check the port, and whether the address begins with http: rather than https:.',
  })
})

test('doctor fails if the head of a response is too large', async () => {
  const { url } = await startUpstream(replyWith(200, {}, { 'X-Long': 'x'.repeat(40_000) }))
  const { checks } = await doctor({ upstreams: { v3: { baseUrl: url } } })
  expect(checks.find(({ check }) => check === 'address of V3')).toMatchObject({
    result: 'fails',
    message: `${url}/ cannot be reached: the header fields of the response are larger than this program accepts (HPE_HEADER_OVERFLOW)`,
    remedy: 'Ask the operator of the service to send fewer or smaller header fields.',
  })
})

test('doctor warns of a missing journal and of files that other users can change, and fails for an invalid configuration', async () => {
  const folder = await makeFolder()
  await writeFile(
    join(folder, 'other.db'),
    'no database, but a text that is long enough to be read as one'.repeat(20),
  )
  const journal = { url: `sqlite:${folder}/other.db` }
  const upstreams = { v3: { baseUrl: v3 } }
  const found = await doctor({ journal, upstreams })
  expect(found.status).toBe(1)
  expect(found.checks.find(({ check }) => check === 'journal')).toMatchObject({ result: 'fails' })
  const path = join(folder, 'open.yaml')
  await writeFile(path, JSON.stringify({ upstreams, journal: { url: 'none' } }))
  await chmod(path, 0o666)
  const open = await runCommand(['doctor', '--config', path])
  expect([open.status, open.stdout]).toEqual([
    0,
    expect.stringContaining(`${path} can be changed by other users`),
  ])
  expect(open.stdout).toContain('warning  journal: there is no journal')
  await writeFile(path, '{ upstreams: { v3: { baseUrl: nowhere } } }')
  const faulty = await runCommand(['doctor', '--config', path])
  expect([faulty.status, faulty.stdout]).toEqual([1, expect.stringContaining('upstreams.v3.baseUrl (line 1')])
})

test('a command finds the configuration by MARKBRIDGE_CONFIG, and lists the places that it searched if it finds none', async () => {
  const out = join(await makeFolder(), 'found.yaml')
  await init(out, '--partner', 'found', '--v3', v3, '--v2', '', '--subscription-key', '')
  const env = { MARKBRIDGE_CONFIG: out }
  expect((await runCommand(['config', 'check'], env)).stdout).toContain('is valid: 1 partner(s): found')
  expect(
    (await runCommand(['check', 'fixtures/class-register/body.txt', '--partner', 'found'], env)).status,
  ).toBe(0)
  expect(await runCommand(['config', 'check'])).toMatchObject({
    status: 2,
    stderr:
      'markbridge: No configuration was found. Name a file with --config or MARKBRIDGE_CONFIG, or create ./markbridge.yaml with markbridge init.\n',
  })
})

test('doctor warns 30 days before the certificate of a listener expires, and fails after the certificate has expired', async () => {
  const folder = await makeFolder()
  const DAY_MS = 86_400_000
  const write = async (name: string, daysLeft: number): Promise<object> => {
    const { cert, key } = createSelfSigned(Date.now() - (90 - daysLeft) * DAY_MS + 3_600_000)
    const [certFile, keyFile] = [join(folder, `${name}.crt`), join(folder, `${name}.key`)]
    await Promise.all([writeFile(certFile, cert), writeFile(keyFile, key)])
    return { port: 0, tls: { cert: { file: certFile }, key: { file: keyFile } } }
  }
  const resultsWith = async (listen: number, console: number) => {
    const { checks } = await doctor({
      upstreams: { v3: { baseUrl: v3 } },
      listen: await write('listen', listen),
      console: await write('console', console),
    })
    return checks.filter(({ check }) => check.startsWith('certificate in')).map(({ result }) => result)
  }
  expect(await resultsWith(29, 31)).toEqual(['warning', 'ok'])
  expect(await resultsWith(89, -1)).toEqual(['ok', 'fails'])
})

const NEEDED = ['upstreams.*.tls', 'client certificate']

describe.skipIf(findProgram('openssl') === undefined)(
  'doctor, for a service with a private certificate authority',
  () => {
    const result = async (
      tls: TlsOptions,
      own: object,
      answer: RequestListener = (_, reply) => reply.writeHead(401).end('{}'),
    ) => {
      const folder = await makeFolder()
      const authority = createAuthority(folder)
      const server = createTlsServer({ ...authority.issue(LOOPBACK, -1, 90), ...tls }, answer).listen(
        0,
        '127.0.0.1',
      )
      await once(server, 'listening')
      onTestFinished(() => {
        server.close()
        server.closeAllConnections()
      })
      const baseUrl = `https://127.0.0.1:${(server.address() as AddressInfo).port}`
      const upstream = { baseUrl, tls: { ca: { file: join(folder, 'ca.pem') }, ...own } }
      const { checks } = await doctor({ upstreams: { v3: upstream } })
      const {
        result: found,
        message,
        remedy = '',
      } = checks.find(({ check }) => check === 'address of V3') ?? { result: '', message: '' }
      return { found, text: `${message} ${remedy}` }
    }
    const wanting = { requestCert: true, rejectUnauthorized: true } as const

    it('accepts the certificate if upstreams.v3.tls.ca names the authority', async () => {
      expect(await result({}, {})).toMatchObject({ found: 'ok' })
    })

    it('says that the server is not trusted if the authority is not named', async () => {
      const { found, text } = await result({}, { ca: undefined })
      expect([found, text]).toEqual(['fails', expect.stringContaining('upstreams.*.tls.ca') as unknown])
    })

    it.each(['TLSv1.2', 'TLSv1.3'] as const)(
      'says that the server requires a client certificate if the server refuses the connection in %s',
      async (version) => {
        const { found, text } = await result({ ...wanting, minVersion: version, maxVersion: version }, {})
        expect(found).toBe('fails')
        for (const words of NEEDED) expect(text).toContain(words)
      },
    )

    it('says that the server requires a client certificate if the server answers 400 as nginx does', async () => {
      const { found, text } = await result({}, {}, (_, reply) =>
        reply.writeHead(400).end('<title>400 No required SSL certificate was sent</title>'),
      )
      expect(found).toBe('fails')
      for (const words of NEEDED) expect(text).toContain(words)
    })
  },
)

test('doctor prints the proxy of each address, and the proxy that refuses a connection, but no credentials of a proxy', async () => {
  const { port, url } = await startProxy({ status: 407 })
  const upstream = { baseUrl: v3, proxy: `http://jane:hush@127.0.0.1:${port}` }
  const refused = await doctor({ upstreams: { v3: upstream } })
  expect(refused.checks.find(({ check }) => check === 'address of V3')).toMatchObject({
    result: 'fails',
    message: expect.stringContaining(`${url} refused the connection (407)`) as unknown,
  })
  expect(JSON.stringify(refused)).not.toMatch(/jane|hush/)
  const open = await startProxy({})
  const { checks } = await doctor({ upstreams: { v3: { baseUrl: v3, proxy: open.url } } })
  expect(checks.map(({ message }) => message)).toContain(
    `it is reached over the proxy ${open.url} (upstreams.v3.proxy)`,
  )
})
