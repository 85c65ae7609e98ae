import { readFile } from 'node:fs/promises'

import { expect, test } from 'vitest'

import { createMetricsSum } from '../../src/observability/metrics-sum.ts'
import { startAdapter } from '../support/start-adapter.ts'

const operations = await readFile(new URL('../../docs/operations.md', import.meta.url), 'utf8')

test('docs/operations.md has a row for every metric, and none for another', async () => {
  const adapter = await startAdapter('http://127.0.0.1:1')
  const { text } = await adapter.request('GET', '/metrics')
  const ofWorkers = await createMetricsSum().render()
  const shown = [...(text + ofWorkers.text).matchAll(/^# TYPE (markbridge_\w+) /gm)].map(([, name]) => name)
  const rows = [...operations.matchAll(/^\| `(markbridge_\w+)` \|/gm)].map(([, name]) => name)
  expect(shown.length).toBeGreaterThan(10)
  expect(rows.sort()).toEqual(shown.sort())
})
