import { execFileSync, spawnSync } from 'node:child_process'
import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'

import { expect, test, vi } from 'vitest'
import { parse } from 'yaml'
import * as z from 'zod'

import { journalKeysOf, parseConfig } from '../../src/config/index.ts'
import { configSchema } from '../../src/config/schema.ts'
import { resolveSecrets } from '../../src/config/secret.ts'
import { createMetricsSum } from '../../src/observability/metrics.ts'
import { journalFile } from '../e2e/support/journal-file.ts'
import { makeFolder } from '../journal/open-sqlite.ts'
import { startAdapter } from '../support/start-adapter.ts'

/** The pages for operators, as one text. */
const pages = ['operations', 'metrics', 'limits', 'fault-runs'].map((name) =>
  readFile(new URL(`../../docs/${name}.md`, import.meta.url), 'utf8'),
)
const operations = (await Promise.all(pages)).join('\n')

/** The texts between backticks in paragraphs and tables. */
const quoted = [...operations.replaceAll(/^```[^]*?^```$/gm, '').matchAll(/`([^`\n]+)`/g)].map(
  ([, text = '']) => text,
)

/** Returns the contents of the fenced blocks of a language. */
function blocks(language: string): string[] {
  return [...operations.matchAll(new RegExp(`^\`\`\`${language}\\n([^]*?)^\`\`\`$`, 'gm'))].map(
    ([, text = '']) => text,
  )
}

interface Node {
  readonly properties?: Readonly<Record<string, Node>>
  readonly items?: Node
}

/** Returns every configuration key with its sections but without list indexes, such as `partners.v3.budgetMs`. */
function keysOf(node: Node, path: readonly string[] = []): string[] {
  const own = Object.entries(node.properties ?? {}).flatMap(([name, child]) => {
    const inner = [...path, name]
    return [inner.join('.'), ...keysOf(child, inner)]
  })
  return node.items === undefined ? own : [...own, ...keysOf(node.items, path)]
}

test('docs/metrics.md has a row for exactly the metrics that exist', async () => {
  const adapter = await startAdapter('http://127.0.0.1:1', { journal: { url: journalFile().url } })
  const { text } = await adapter.request('GET', '/metrics')
  const ofWorkers = await createMetricsSum(Date.now).render()
  const shown = [...(text + ofWorkers.text).matchAll(/^# TYPE (markbridge_\w+) /gm)].map(([, name]) => name)
  const rows = [...operations.matchAll(/^\| `(markbridge_\w+)` \|/gm)].map(([, name]) => name)
  expect(shown.length).toBeGreaterThan(10)
  // Removes duplicates: an adapter and the process that starts workers both report the metrics of reloads.
  expect(rows.sort()).toEqual([...new Set(shown)].sort())
})

test('every counter, and no other metric, has a name in _total, and begins at 0 unless docs/metrics.md says otherwise', async () => {
  const adapter = await startAdapter('http://127.0.0.1:1', { journal: { url: journalFile().url } })
  const { text: own } = await adapter.request('GET', '/metrics')
  const text = own + (await createMetricsSum(Date.now).render()).text
  const counters = [...text.matchAll(/^# TYPE (\w+) counter$/gm)].map(([, name = '']) => name)
  const inTotal = [...text.matchAll(/^# TYPE (\w+_total) /gm)].map(([, name]) => name)
  expect(inTotal.filter((name = '') => !counters.includes(name))).toEqual([])
  const ofAdapter = counters.filter((name) => name.startsWith('markbridge_'))
  expect(ofAdapter.filter((name) => !name.endsWith('_total'))).toEqual([])
  const late = [
    ...(/appear with their first count:\n\n(?:- .*\n)+/.exec(operations)?.[0] ?? '').matchAll(
      /`(\w+_total)`/g,
    ),
  ]
  const begun = ofAdapter.filter((name) => new RegExp(`^${name}(?:\\{.*\\})? 0$`, 'm').test(text))
  expect(ofAdapter.filter((name) => !begun.includes(name)).sort()).toEqual(
    late.map(([, name = '']) => `markbridge_${name}`).sort(),
  )
  expect(text).toContain(
    'markbridge_compare_dropped_total{partner="default",check="readBack",reason="full"} 0',
  )
  expect(text).toContain(
    'markbridge_compare_skipped_total{partner="default",check="reply",reason="failed"} 0',
  )
})

test('every configuration key on the pages for operators exists', () => {
  const schema = z.toJSONSchema(configSchema, { io: 'input', unrepresentable: 'any' })
  const known = keysOf(schema as Node)
  const named = quoted.filter((text) => /^(?:listen|upstreams|limits|journal|partners|v3|quirks|reads|passThrough)(?:\.\w+)+$/.test(text)) // prettier-ignore
  expect(named.length).toBeGreaterThan(15)
  const unknown = named.filter((name) => !known.some((key) => key === name || key.endsWith(`.${name}`)))
  expect(unknown).toEqual([])
})

test('the configuration in docs/operations.md is valid', async () => {
  const text = blocks('yaml').find((block) => block.includes('journal:')) ?? ''
  const input: unknown = { upstreams: { v3: { baseUrl: 'http://127.0.0.1:1' } }, ...(parse(text) as object) }
  const env = vi.fn((name: string) => (name.endsWith('_URL') ? 'postgres://db/journal' : '00'.repeat(32)))
  const { value, faults } = await resolveSecrets(input, { env, file: () => Promise.resolve(undefined) })
  expect(journalKeysOf(parseConfig(value, faults).journal).map(({ id }) => id)).toEqual(['k1'])
  expect(env.mock.calls.flat()).toEqual(['MARKBRIDGE_JOURNAL_URL', 'MARKBRIDGE_JOURNAL_KEY'])
})

test('the backup command of docs/operations.md creates a file that only its owner can read', async ({
  skip,
}) => {
  if (spawnSync('sqlite3', ['--version']).error !== undefined) {
    console.warn('SKIPPED: the backup of docs/operations.md needs sqlite3 (Debian: apt-get install sqlite3).')
    skip()
  }
  const command = quoted.find((text) => text.includes('.backup')) ?? 'no command'
  const file = join(await makeFolder(), 'journal.db')
  const copy = `${file}.copy`
  execFileSync('sqlite3', [file, 'create table kept (x)'])
  const own = command.replace('/var/lib/markbridge/journal.db', file).replace('/backup/journal.db', copy)
  execFileSync('sh', ['-c', `umask 022; ${own}`])
  expect((await stat(copy)).mode & 0o777).toBe(0o600)
})
