import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'

import { loadConfig, printConfig, readEnvironment } from '../../src/config/index.ts'
import { AdapterError } from '../../src/errors.ts'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'markbridge-'))
})
afterAll(() => rm(folder, { recursive: true }))
afterEach(() => {
  vi.unstubAllEnvs()
})

async function file(name: string, text: string): Promise<string> {
  const path = join(folder, name)
  await writeFile(path, text)
  return path
}

/** The error of a loading that must fail; its text as a user reads it. */
async function faultOf(loading: Promise<unknown>): Promise<AdapterError> {
  const error = await loading.then(
    () => undefined,
    (cause: unknown) => cause,
  )
  if (error instanceof AdapterError) return error
  throw new Error(`no AdapterError: ${String(error)}`)
}

const v3 = 'upstreams: { v3: { baseUrl: "http://v3.test" } }\n'

describe('loadConfig', () => {
  it('product 6: reads the file, and fills in every default', async () => {
    const config = await loadConfig(await file('plain.yaml', v3))
    expect(config).toMatchObject({
      listen: { host: '127.0.0.1', port: 8080 },
      upstreams: {
        v3: {
          connections: 32,
          timeouts: { connectMs: 5_000, acquireMs: 10_000, headersMs: 20_000, bodyMs: 20_000 },
        },
      },
      limits: {
        maxBodyBytes: 33_554_432,
        maxParts: 20_000,
        maxPartHeaderBytes: 65_536,
        maxPartBytes: 1_048_576,
        maxInFlightBytes: 268_435_456,
        slowClients: { minBytesPerSecond: 512, headersMs: 20_000, uploadMs: 10_000, replyMs: 30_000 },
      },
      partners: [
        { id: 'default', match: { any: true }, stage: 'v3', layout: 'flat', unmappedFields: 'report' },
      ],
      passThrough: { rewriteLinks: true },
    })
    expect(config.upstreams.v3.baseUrl.href).toBe('http://v3.test/')
  })

  it('product 9: flags win over the file, and do without one', async () => {
    const path = await file('listen.yaml', `${v3}listen: { host: 127.0.0.9, port: 1 }\n`)
    const flags = { v3: 'https://other.test/base', port: 9, host: '::1' }
    for (const own of [path, undefined]) {
      const { listen, upstreams } = await loadConfig(own, flags)
      expect([listen.host, listen.port, upstreams.v3.baseUrl.href]).toEqual(['::1', 9, flags.v3])
    }
    const { listen } = await loadConfig(path, { port: 2 })
    expect([listen.host, listen.port]).toEqual(['127.0.0.9', 2])
  })

  it.each([
    ['nothing', ''],
    ['a comment', '# nothing\n'],
    ['null', '~\n'],
  ])('takes a file with %s for an empty one', async (_name, text) => {
    const error = await faultOf(loadConfig(await file('empty.yaml', text)))
    expect(error.details.map(({ target, message }) => `${target ?? ''} ${message}`)).toEqual([
      'upstreams.v3.baseUrl is required',
    ])
  })

  it.each([
    ['a list', '- 1\n'],
    ['text', 'hello\n'],
  ])('refuses %s', async (_name, text) => {
    const error = await faultOf(loadConfig(await file('other.yaml', text)))
    expect([error.code, error.details.length]).toEqual(['ADP_CONFIGURATION', 1])
  })

  it.each([
    ['listen: 5\n', 'listen'],
    ['listen: []\n', 'listen'],
  ])('refuses a section that is none, also under flags: %j', async (text, target) => {
    const path = await file('section.yaml', v3 + text)
    for (const flags of [{}, { port: 1, v3: 'http://v3.test' }]) {
      const error = await faultOf(loadConfig(path, flags))
      expect(error.details.map((detail) => detail.target)).toEqual([target])
    }
    const upstreams = await file('upstreams.yaml', 'upstreams: no\n')
    expect((await faultOf(loadConfig(upstreams, { v3: 'http://v3.test' }))).details.length).toBe(1)
  })

  it('names a file that cannot be read', async () => {
    const path = join(folder, 'none.yaml')
    const error = await faultOf(loadConfig(path))
    expect([error.code, error.message, error.at]).toEqual([
      'ADP_CONFIGURATION',
      `The configuration file ${path} cannot be read.`,
      { path },
    ])
  })

  it.each([
    ['an open quote', 'a: 1\nb: "hush\nc: 2\n', 4],
    ['a tab', 'a: 1\nb:\n\tc: hush\n', 3],
    ['a key twice', 'a: hush\nb: 1\na: hush\n', 3],
    ['two documents', 'a: 1\n---\nb: hush\n', 2],
    ['an alias of nothing', 'a: *hush\n', 1],
  ])('names the line of a YAML error, never its text: %s', async (_name, text, line) => {
    const path = await file('broken.yaml', text)
    const error = await faultOf(loadConfig(path))
    expect(error.message).toBe(`${path}: line ${line} is not YAML.`)
    expect(JSON.stringify([error.details, error.at, String(error.cause)])).not.toContain('hush')
  })

  it('keeps YAML warnings, which quote the line, to itself', async () => {
    const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined)
    await loadConfig(await file('tag.yaml', `${v3}partners: [{ id: !hush acme, match: { any: true } }]\n`))
    expect(warn.mock.calls).toEqual([])
    warn.mockRestore()
  })
})

describe('secrets', () => {
  const partner = (secret: string): string =>
    `${v3}partners: [{ id: acme, match: { any: true }, v3: { subscriptionKey: ${secret} } }]\n`

  it('come from the environment or a file and are never printed', async () => {
    vi.stubEnv('ACME_KEY', 'hush-env')
    const secretFile = await file('secret', 'hush-file\n')
    for (const [source, value] of [
      ['env: ACME_KEY', 'hush-env'],
      [`file: ${secretFile}`, 'hush-file'],
    ] as const) {
      const config = await loadConfig(await file('secret.yaml', partner(`{ ${source} }`)))
      expect(config.partners[0]?.v3.subscriptionKey?.reveal()).toBe(value)
      expect(printConfig(config)).toContain('subscriptionKey: "[secret]"')
      expect(printConfig(config) + JSON.stringify(config)).not.toContain('hush')
    }
  })

  it('must not stand in the file itself, and are not repeated', async () => {
    const error = await faultOf(loadConfig(await file('inline.yaml', partner('hush'))))
    expect(error.message).toContain('partners[0].v3.subscriptionKey: must be { env: NAME } or { file: path }')
    expect(JSON.stringify([error.message, error.details])).not.toContain('hush')
  })

  it('are reported together with every other fault', async () => {
    vi.stubEnv('EMPTY', '')
    vi.stubEnv('LINES', 'hush\nhush')
    const partners = [
      '{ env: EMPTY }',
      '{ env: UNSET_NAME }',
      '{ env: LINES }',
      `{ file: ${join(folder, 'none')} }`,
      `{ file: ${await file('blank', ' \n')} }`,
    ]
    const list = partners.map(
      (secret, index) => `  - { id: p${index}, match: { any: true }, v3: { subscriptionKey: ${secret} } }\n`,
    )
    const error = await faultOf(
      loadConfig(await file('many.yaml', `${v3}listn: {}\npartners:\n${list.join('')}`)),
    )
    expect(error.details.map(({ target, message }) => `${target ?? ''}: ${message}`)).toEqual([
      'partners[0].v3.subscriptionKey: the environment variable EMPTY is not set',
      'partners[1].v3.subscriptionKey: the environment variable UNSET_NAME is not set',
      'partners[2].v3.subscriptionKey: holds a line end or another control character',
      `partners[3].v3.subscriptionKey: the file ${join(folder, 'none')} cannot be read`,
      `partners[4].v3.subscriptionKey: the file ${join(folder, 'blank')} is empty`,
      'listn: is not a key of the configuration; did you mean listen?',
    ])
    expect(error.message).not.toContain('hush')
    expect(error.message).toMatch(/^The configuration has 6 fault\(s\):\n/)
  })
})

it('reads its own variables, an empty one as unset', () => {
  vi.stubEnv('MARKBRIDGE_LOG_LEVEL', 'warn')
  vi.stubEnv('MARKBRIDGE_SUBSCRIPTION_KEY', '')
  vi.stubEnv('MARKBRIDGE_TOKEN', undefined)
  expect(readEnvironment()).toEqual({ logLevel: 'warn', subscriptionKey: undefined, token: undefined })
})
