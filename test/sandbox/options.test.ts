import { expect, test } from 'vitest'
import { readOptions } from '../../src/sandbox/options.ts'

test('readOptions returns a default for every option of the sandbox', () => {
  expect(readOptions({})).toEqual({
    host: '127.0.0.1',
    port: 0,
    seed: 1,
    scale: 'class',
    db: ':memory:',
    onExisting: 'replace',
    pageSize: 1000,
    maxDays: 90,
    batch: true,
    keys: [],
    tokens: [],
    clients: [],
    maxBodyBytes: 33_554_432,
  })
})
