import { expect, test } from 'vitest'
import { AdapterError } from '../../src/errors.ts'
import { readOptions, type SandboxOptions } from '../../src/sandbox/options.ts'

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

test('a program is told what a file is told: every fault at once, with the nearest known name', () => {
  const options = {
    foo: 1,
    prot: 4010,
    keys: 'x',
    unavailable: ['LearnerWelfare', 'Nope'],
    tokens: [{ token: 'hidden-token', domains: ['Atendance'] }],
    contextUrl: 'ftp://x',
  }
  const attempt = () => readOptions(options as unknown as SandboxOptions)
  expect(attempt).toThrow(AdapterError)
  expect(attempt).toThrow(
    expect.objectContaining({
      code: 'ADP_USAGE',
      message: [
        'The sandbox cannot be started with these options:',
        '  contextUrl: must be an absolute URL that begins with http:// or https://',
        '  unavailable[0]: must be an entity set of the learner domains; did you mean LearnerWelfares?',
        '  unavailable[1]: must be an entity set of the learner domains',
        '  keys: must be a list, not a text',
        '  tokens[0].domains[0]: must be a permission of the service; did you mean Attendance?',
        '  foo: is not a key of the configuration; did you mean now?',
        '  prot: is not a key of the configuration; did you mean port?',
      ].join('\n'),
    }),
  )
})
