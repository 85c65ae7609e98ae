import { expect, test } from 'vitest'
import { operationTarget } from '../../../src/sandbox/batch/operation.ts'
import type { Operation } from '../../../src/sandbox/batch/operation.ts'
import { runOperations } from '../../../src/sandbox/batch/run-operations.ts'

/** An operation that answers with the status its URL says. */
const operation = (id: string, status: number, group?: string, dependsOn: string[] = []): Operation => ({
  ...{ id, group, dependsOn, method: 'POST', url: String(status), headers: new Map<string, string>() },
  body: Buffer.alloc(0),
})

function run(operations: Operation[], continueOnError = true) {
  const executed: string[] = []
  const kept: boolean[] = []
  const results = runOperations(operations, {
    execute: ({ id, url }) => {
      executed.push(id ?? '')
      return { status: Number(url), headers: {}, body: '' }
    },
    attempt: (work) => {
      const result = work()
      kept.push(result)
      return result
    },
    continueOnError,
  })
  return { executed, kept, statuses: results.map(({ operation: { id }, reply }) => [id, reply.status]) }
}

test('operations run in order, each for itself', () => {
  expect(run([operation('a', 201), operation('b', 400), operation('c', 200)])).toEqual({
    executed: ['a', 'b', 'c'],
    kept: [],
    statuses: [
      ['a', 201],
      ['b', 400],
      ['c', 200],
    ],
  })
})

test('the first failure ends a batch that does not go on', () => {
  expect(run([operation('a', 400), operation('b', 200)], false).executed).toEqual(['a'])
})

test('a group is kept whole or undone', () => {
  const operations = [
    operation('a', 201, 'g'),
    operation('b', 201, 'g'),
    operation('c', 201, 'h'),
    operation('d', 500, 'h'),
  ]
  expect(run(operations)).toEqual({
    executed: ['a', 'b', 'c', 'd'],
    kept: [true, false],
    statuses: [
      ['a', 201],
      ['b', 201],
      ['c', 424],
      ['d', 500],
    ],
  })
})

test('what comes after the failure in a group is not run', () => {
  const { executed, statuses } = run([operation('a', 400, 'g'), operation('b', 201, 'g')])
  expect(executed).toEqual(['a'])
  expect(statuses).toEqual([
    ['a', 400],
    ['b', 424],
  ])
})

test('an operation that depends on a failed one or a failed group is not run', () => {
  const { executed, statuses } = run([
    operation('a', 400),
    operation('b', 200, undefined, ['a']),
    operation('c', 200, undefined, ['b']),
    operation('d', 500, 'g'),
    operation('e', 200, undefined, ['g']),
    operation('f', 200),
  ])
  expect(executed).toEqual(['a', 'd', 'f'])
  expect(statuses.map(([, status]) => status)).toEqual([400, 424, 424, 500, 424, 200])
})

test.each([
  ['Set', '/p/V3/Set', ''],
  ['Set?$top=1', '/p/V3/Set', '$top=1'],
  ['/q/V3/Set?a?b', '/q/V3/Set', 'a?b'],
  ['https://host:1/q/V3/Set', '/q/V3/Set', ''],
  ['http://host?x', '/p/V3/', 'x'],
])('the URL %s leads to %s', (url, path, query) => {
  expect(operationTarget(url, '/p/V3')).toEqual({ path, query })
})
