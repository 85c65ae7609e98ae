import { readFile } from 'node:fs/promises'

import Ajv from 'ajv'
import { parse, parseAllDocuments } from 'yaml'
import { describe, expect, it } from 'vitest'

import { parseConfig } from '../../src/config/index.ts'
import { createConfigJsonSchema, type JsonSchemaNode } from '../../src/config/schema.ts'

const read = (name: string): Promise<string> => readFile(new URL(`../../${name}`, import.meta.url), 'utf8')

const schema = createConfigJsonSchema()
const ajv = new Ajv({ allErrors: true })
const validate = ajv.compile(schema)

/** Returns the faults that an editor would show, as `<path> <message>`. */
function faultsOf(input: unknown): string[] {
  return validate(input) === true
    ? []
    : (validate.errors ?? []).map(({ dataPath, message }) => `${dataPath} ${message ?? ''}`)
}

const upstreams = { v3: { baseUrl: 'http://v3.test' } }
const withPartner = (members: object): object => ({
  upstreams,
  partners: [{ id: 'a', match: { any: true }, ...members }],
})

/** Returns every key with its sections, such as `partners[].v3.budgetMs`. */
function keysOf(node: JsonSchemaNode, path = ''): [string, JsonSchemaNode][] {
  const own = Object.entries(node.properties ?? {}).flatMap(([name, child]): [string, JsonSchemaNode][] => {
    const inner = path === '' ? name : `${path}.${name}`
    return [[inner, child], ...keysOf(child, inner)]
  })
  const choices = (node.anyOf ?? []).flatMap((choice) => keysOf(choice, path))
  const items = node.items === undefined ? [] : keysOf(node.items, `${path}[]`)
  return [...own, ...choices, ...items]
}

describe('createConfigJsonSchema', () => {
  it('accepts the example configurations', async () => {
    const page = await read('docs/configuration.md')
    const example = parse(/^```yaml\n([^]*?)^```$/m.exec(page)?.[1] ?? '') as object
    expect(faultsOf(example)).toEqual([])
    const auth = parse(/^```yaml auth\n([^]*?)^```$/m.exec(page)?.[1] ?? '') as object
    expect(faultsOf(withPartner({ v3: auth }))).toEqual([])
    const [first] = parseAllDocuments(await read('deploy/kubernetes.yaml'))
    const map = first?.toJS() as { data: Record<string, string> }
    expect(faultsOf(parse(map.data['markbridge.yaml'] ?? ''))).toEqual([])
  })

  it.each<[what: string, input: object]>([
    ['an id in capitals', withPartner({ id: 'Acme' })],
    ['a hash in capitals', withPartner({ match: { subscriptionKeySha256: 'AB'.repeat(32) } })],
    [
      'a list of hashes',
      withPartner({ match: { subscriptionKeySha256: ['ab'.repeat(32), 'cd'.repeat(32)] } }),
    ],
    [
      'guids in capitals',
      withPartner({ reads: { unmarkedCodes: ['AAAAAAAA-0000-4000-8000-00000000000A'] } }),
    ],
    ['a path prefix', withPartner({ match: { pathPrefix: '/acme' } })],
    ['the rate none', withPartner({ v3: { callsPerSecond: 'none' } })],
    ['a rate with a fraction', withPartner({ v3: { callsPerSecond: 2.5 } })],
    ['an address of PostgreSQL', { upstreams, journal: { url: 'postgres://db.test/journal' } }],
    ['a pattern with methods', { upstreams, passThrough: { allow: [{ path: '/x', methods: ['PUT'] }] } }],
  ])('accepts %s, as the program does', (_, input) => {
    expect(parseConfig(input)).toBeDefined()
    expect(faultsOf(input)).toEqual([])
  })

  it.each<[what: string, input: object, path: string]>([
    ['an unknown key', { upstreams, listn: {} }, ''],
    ['a missing address of V3', {}, ''],
    ['an address with the scheme ftp', { upstreams: { v3: { baseUrl: 'ftp://x' } } }, '.upstreams.v3.baseUrl'],
    ['an invalid port', { upstreams, listen: { port: 70_000 } }, '.listen.port'],
    ['a text for a number', withPartner({ v3: { budgetMs: 'long' } }), '.partners[0].v3.budgetMs'],
    ['a secret in the file', withPartner({ v3: { subscriptionKey: 'abc' } }), '.partners[0].v3.subscriptionKey'],
    ['a secret from both env and file', withPartner({ v3: { subscriptionKey: { env: 'A', file: 'b' } } }), '.partners[0].v3.subscriptionKey'],
    ['two kinds of match', withPartner({ match: { any: true, pathPrefix: '/x' } }), '.partners[0].match'],
    ['an invalid hash', withPartner({ match: { subscriptionKeySha256: 'abc' } }), '.partners[0].match'],
    ['a rate of zero', withPartner({ v3: { callsPerSecond: 0 } }), '.partners[0].v3.callsPerSecond'],
    ['a journal in memory', { upstreams, journal: { url: 'sqlite::memory:' } }, '.journal.url'],
  ])('refuses %s, as the program does', (_, input, path) => {
    expect(() => parseConfig(input)).toThrow()
    expect(faultsOf(input).map((fault) => fault.split(' ', 1)[0])).toContain(path)
  }) // prettier-ignore

  it('contains a description and the default of every key', () => {
    const keys = keysOf(schema)
    expect(keys.filter(([, { description }]) => description === undefined)).toEqual([])
    const port = keys.find(([name]) => name === 'listen.port')?.[1]
    expect(port).toMatchObject({ type: 'integer', default: 8080, maximum: 65_535 })
  })
})
