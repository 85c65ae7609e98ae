import { readFile } from 'node:fs/promises'

import { sql } from 'kysely'
import { expect, it } from 'vitest'

import { configSchema } from '../../src/config/schema.ts'
import { openSqlite, makeFolder } from '../journal/open-sqlite.ts'

const text = await readFile(new URL('../../docs/data-protection.md', import.meta.url), 'utf8')
const kept = text.split('\n## ')[1] ?? ''

it('docs/data-protection.md lists exactly the tables of the journal', async () => {
  const { store } = await openSqlite(`${await makeFolder()}/journal.db`)
  const { rows } = await sql<{ name: string }>`
    select name from sqlite_master where type = 'table' and name not like 'sqlite_%'`.execute(store.db)
  const named = [...kept.matchAll(/`((?:journal|rollout|evidence)_\w+)`/g)].map(([, name = '']) => name)
  expect(named.sort()).toEqual(rows.map(({ name }) => name).sort())
})

it('docs/data-protection.md names existing configuration keys with their actual defaults', () => {
  const config: unknown = configSchema.parse({ upstreams: { v3: { baseUrl: 'http://127.0.0.1' } } })
  const valueOf = (path: string): unknown =>
    path
      .split('.')
      .reduce<unknown>((value, name) => (value as Record<string, unknown> | undefined)?.[name], config)
  const named = new Set(
    [...text.matchAll(/`((?:journal|limits|listen)\.\w+)`/g)].map(([, path = '']) => path),
  )
  expect(named.size).toBeGreaterThan(4)
  expect([...named].filter((path) => valueOf(path) === undefined)).toEqual([])
  const hours = (path: string): number => Number(valueOf(path)) / 3_600_000
  expect(text).toContain(`\`journal.keepRecordsMs\`, ${hours('journal.keepRecordsMs') / 24} days`)
  expect(text).toContain(`\`journal.replayForMs\`, ${hours('journal.replayForMs')} h`)
})
