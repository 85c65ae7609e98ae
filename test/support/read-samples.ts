import { expect } from 'vitest'

import type { Adapter } from './start-adapter.ts'

/** Returns the metric samples of the adapter, by name and labels. */
export async function readSamples(adapter: Pick<Adapter, 'request'>): Promise<Map<string, number>> {
  const { status, text } = await adapter.request('GET', '/metrics')
  expect(status).toBe(200)
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  return new Map(lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.split(' ').at(-1))]))
}
