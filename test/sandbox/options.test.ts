import { expect, test } from 'vitest'
import { AdapterError } from '../../src/errors.ts'
import { readOptions } from '../../src/sandbox/options.ts'

test('everything has a default', () => {
  expect(readOptions({})).toEqual({
    host: '127.0.0.1',
    port: 0,
    seed: 1,
    scale: 'class',
    db: ':memory:',
    control: true,
    onExisting: 'replace',
    unmappedFields: 'report',
    typeNames: 'documented',
    pageSize: 1000,
    maxDays: 90,
    batch: true,
    unavailable: [],
    keys: [],
    tokens: [],
    clients: [],
    maxBodyBytes: 33_554_432,
  })
})

test.each([
  [{ port: -1, seed: 0.5 }, ['port', 'seed']],
  [{ now: 'yesterday' }, ['now']],
])('%j is refused with every fault', (options, targets) => {
  const attempt = () => readOptions(options)
  expect(attempt).toThrow(AdapterError)
  expect(attempt).toThrow(expect.objectContaining({ code: 'ADP_USAGE' }))
  expect(attempt).toThrow(
    expect.objectContaining({
      details: targets.map((target): unknown => expect.objectContaining({ target })),
    }),
  )
})
