import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'

import { loadConfig, readEnvironment } from '../../src/config/index.ts'
import { printConfig } from '../../src/config/yaml.ts'
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
  it('prefers command-line flags to the values of the file, and works without a file (product contract 9)', async () => {
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
  ])('treats a file with %s as an empty file', async (_name, text) => {
    const error = await faultOf(loadConfig(await file('empty.yaml', text)))
    expect(error.details.map(({ target, message }) => `${target ?? ''} ${message}`)).toEqual([
      'upstreams.v3.baseUrl is required',
    ])
  })

  it.each([
    ['array', '- 1\n'],
    ['string', 'hello\n'],
  ])('refuses a file whose content is of the type %s', async (name, text) => {
    const path = await file('other.yaml', text)
    const error = await faultOf(loadConfig(path))
    expect([error.code, error.message]).toEqual([
      'ADP_CONFIGURATION',
      `${path} has 1 fault:\n  ${path}: Invalid input: expected object, received ${name}`,
    ])
  })

  it.each([
    ['listen: 5\n', 'listen'],
    ['listen: []\n', 'listen'],
  ])('refuses a value in place of a section, even if flags override it: %j', async (text, target) => {
    const path = await file('section.yaml', v3 + text)
    for (const flags of [{}, { port: 1, v3: 'http://v3.test' }]) {
      const error = await faultOf(loadConfig(path, flags))
      expect(error.details.map((detail) => detail.target)).toEqual([target])
    }
    const upstreams = await file('upstreams.yaml', 'upstreams: no\n')
    expect((await faultOf(loadConfig(upstreams, { v3: 'http://v3.test' }))).details.length).toBe(1)
  })

  it('throws all faults as details, but lists only the first hundred in the message', async () => {
    const count = 1_000
    const lines = Array.from({ length: count }, (_, index) => `key${index}: 1`)
    const path = await file('many.yaml', `${v3}${lines.join('\n')}\nkey0: 2\n`)
    const error = await faultOf(loadConfig(path))
    const shown = error.message.split('\n')
    expect([shown.length, shown[0], shown.at(-1)]).toEqual([
      102,
      `${path} has ${count + 1} faults:`,
      `  and ${count - 99} more`,
    ])
    expect(shown[1]).toMatch(/^ {2}key0 \(line \d+, column 1\): is not a key of the configuration/)
    expect(error.details).toHaveLength(count + 1)
    expect(error.details.at(-1)?.message).toBe('not valid YAML: duplicate key')
  })

  it('names the file in its error if the file cannot be read', async () => {
    const path = join(folder, 'none.yaml')
    const error = await faultOf(loadConfig(path))
    expect([error.code, error.message, error.at]).toEqual([
      'ADP_CONFIGURATION',
      `The configuration file ${path} cannot be read: no such file. Nothing was changed. Check the path and the permissions.`,
      { path },
    ])
    expect((await faultOf(loadConfig(folder))).message).toBe(
      `The configuration file ${folder} cannot be read: the path is a folder. Nothing was changed. Check the path and the permissions.`,
    )
  })

  it.each([
    ['an open quote', 'a: 1\nb: "hush\nc: 2\n', ['line 4, column 1: not valid YAML: missing char']],
    ['a tab', 'a: 1\nb:\n\tc: hush\n', ['line 3, column 1: not valid YAML: tab as indent']],
    [
      'two documents',
      'colour: 1\n---\nb: hush\n',
      [
        'upstreams.v3.baseUrl: is required',
        expect.stringMatching(/^colour \(line 1, column 1\): is not a key/),
        'line 2, column 1: not valid YAML: multiple docs',
      ],
    ],
    ['an alias without an anchor', 'a: *hush\n', ['line 1, column 4: the alias refers to no earlier anchor']],
    [
      'several faults',
      'a: "\\q hush"\nb: @hush\nc: [1, 2\n',
      [
        'line 1, column 5: not valid YAML: bad dq escape',
        'line 2, column 4: not valid YAML: bad scalar start',
        'line 4, column 1: not valid YAML: bad indent',
      ],
    ],
    [
      'an alias inside its anchor',
      'partners: &hush\n  - *hush\n',
      ['line 2, column 5: the alias refers to the value that contains the alias'],
    ],
    [
      'an alias deep inside its anchor',
      'a: &hush { b: [{ c: *hush }] }\n',
      ['line 1, column 21: the alias refers to the value that contains the alias'],
    ],
    [
      'aliases that expand exponentially',
      `a: &a [hush]\n${['b', 'c', 'd', 'e', 'f', 'g', 'h'].map((name, at) => `${name}: &${name} [${`*${'abcdefg'.charAt(at)},`.repeat(9)}]`).join('\n')}\n`,
      ['PATH: the aliases expand the file to more than 100 times its size'],
    ],
  ])(
    'reports line, column and cause of a YAML error, but never quotes the file: %s',
    async (_name, text, faults) => {
      const path = await file('broken.yaml', text)
      const error = await faultOf(loadConfig(path))
      const [head, ...lines] = error.message.split('\n')
      expect(head).toMatch(/ has \d+ faults?:$/)
      expect(lines.map((line) => line.trim().replace(path, 'PATH'))).toEqual(faults)
      expect(JSON.stringify([error.details, error.at, String(error.cause)])).not.toContain('hush')
    },
  )

  it('reports extremely deep nesting with a single fault', async () => {
    for (const text of ['['.repeat(100_000), `${'- '.repeat(100_000)}hush`, '{a: '.repeat(100_000)]) {
      const error = await faultOf(loadConfig(await file('nested.yaml', text)))
      expect(error.message.split('\n')).toEqual([
        expect.stringMatching(/ has 1 fault:$/),
        expect.stringMatching(/nested too deeply$/),
      ])
    }
  })

  it('merges the mappings of YAML merge keys', async () => {
    const text = `${v3}partners:\n  - &base { id: one, match: { header: { name: X, value: { env: HEADER } } }, layout: nested }\n  - { <<: *base, id: two, match: { any: true } }\n`
    vi.stubEnv('HEADER', 'x')
    const { partners } = await loadConfig(await file('merged.yaml', text))
    expect(partners.map(({ id, layout, match }) => [id, layout, Object.keys(match)])).toEqual([
      ['one', 'nested', ['header']],
      ['two', 'nested', ['any']],
    ])
  })

  it('reports a merge key without a mapping', async () => {
    const error = await faultOf(loadConfig(await file('unmerged.yaml', `${v3}limits: { <<: hush }\n`)))
    expect(error.message).toContain('a merge key (<<) must name a mapping, or a list of mappings')
    expect(error.message).not.toContain('hush')
  })

  it('suppresses YAML warnings, because a warning quotes the line of the file', async () => {
    const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined)
    await loadConfig(await file('tag.yaml', `${v3}partners: [{ id: !hush acme, match: { any: true } }]\n`))
    expect(warn.mock.calls).toEqual([])
    warn.mockRestore()
  })
})

describe('the position of a fault in the configuration file', () => {
  it('is the line and the column of the faulty key', async () => {
    const text = [
      'upstreams: { v3: { baseUrl: "ftp://hush" } }',
      'journal:',
      '  keys:',
      '    - { id: k1, key: { env: UNSET_KEY } }',
      '    - { id: k1, key: hush }',
      'partners:',
      '  - id: acme',
      '    match: { any: true }',
      '    v3:',
      '      budgetMS: 5',
      '      subscriptionKey: { env: UNSET_KEY }',
      '  - id: acme',
      '    id: other',
      '    match: { pathPrefix: /x }',
      '  - match: { header: { name: X-Partner, value: hush } }',
      'listen: { prot: 1 }',
      '',
    ].join('\n')
    const error = await faultOf(loadConfig(await file('places.yaml', text)))
    const lines = error.message.split('\n').slice(1)
    expect(lines.map((line) => line.trim().split(';')[0])).toEqual([
      'upstreams.v3.baseUrl (line 1, column 20): must be an http or https address',
      'journal.keys[0].key (line 4, column 17): the environment variable UNSET_KEY is not set',
      'journal.keys[1].id (line 5, column 9): is already the id of journal.keys[0]',
      'journal.keys[1].key (line 5, column 17): must be { env: NAME } or { file: path }, never the key itself',
      expect.stringMatching(
        /^partners\[0\]\.match \(line 8, column 5\): must be "subscriptionKeySha256" or "header"/,
      ),
      'partners[0].v3.budgetMS (line 10, column 7): is not a key of the configuration',
      'partners[0].v3.subscriptionKey (line 11, column 7): the environment variable UNSET_KEY is not set',
      'line 13, column 5: not valid YAML: duplicate key',
      'partners[1].match (line 14, column 5): matches requests that already go to partners[0]',
      'partners[2].id (line 15, column 5): is required',
      'partners[2].match (line 15, column 5): matches requests that already go to partners[0]',
      'listen.prot (line 16, column 11): is not a key of the configuration',
    ])
    expect(JSON.stringify([error.message, error.details])).not.toContain('hush')
  })
})

describe('a secret of the configuration', () => {
  const partner = (secret: string): string =>
    `${v3}partners: [{ id: acme, match: { any: true }, clients: open, v3: { subscriptionKey: ${secret} } }]\n`

  it('is read from the environment or a file, and is never printed', async () => {
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

  it('is reported together with all other faults if it is missing or unusable', async () => {
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
      (secret, index) =>
        `  - { id: p${index}, match: { pathPrefix: /p${index} }, clients: open, v3: { subscriptionKey: ${secret} } }\n`,
    )
    const error = await faultOf(
      loadConfig(await file('many.yaml', `${v3}listn: {}\npartners:\n${list.join('')}`)),
    )
    expect(error.details.map(({ target, message }) => `${target ?? ''}: ${message}`)).toEqual([
      'listn: is not a key of the configuration; did you mean listen?',
      'partners[0].v3.subscriptionKey: the environment variable EMPTY is not set',
      'partners[1].v3.subscriptionKey: the environment variable UNSET_NAME is not set',
      'partners[2].v3.subscriptionKey: contains a line break or another control character',
      `partners[3].v3.subscriptionKey: the file ${join(folder, 'none')} cannot be read`,
      `partners[4].v3.subscriptionKey: the file ${join(folder, 'blank')} is empty`,
    ])
    expect(error.message).not.toContain('hush')
    expect(error.message).toMatch(/\/many\.yaml has 6 faults:\n/)
  })
})

it('readEnvironment reads the environment variables, and treats an empty variable as unset', () => {
  vi.stubEnv('MARKBRIDGE_LOG_LEVEL', 'warn')
  vi.stubEnv('MARKBRIDGE_SUBSCRIPTION_KEY', '')
  for (const name of [
    'HTTP_PROXY',
    'http_proxy',
    'https_proxy',
    'NO_PROXY',
    'no_proxy',
    'MARKBRIDGE_TOKEN',
    'MARKBRIDGE_CONFIG',
    'npm_lifecycle_event',
  ])
    vi.stubEnv(name, undefined)
  vi.stubEnv('HTTPS_PROXY', 'http://proxy.test:3128')
  expect(readEnvironment()).toEqual({
    proxies: { https: 'http://proxy.test:3128' },
    logLevel: 'warn',
    subscriptionKey: undefined,
    token: undefined,
  })
})
