import { expect, test } from 'vitest'
import { nextLink, pageSize, takePage } from '../../../src/sandbox/query/page.ts'

test.each([
  [1000, undefined, undefined, { size: 1000, rest: undefined }],
  [1000, undefined, 5, { size: 5, rest: 0 }],
  [1000, undefined, 1500, { size: 1000, rest: 500 }],
  [1000, 'odata.maxpagesize=10', undefined, { size: 10, rest: undefined }],
  [1000, 'return=minimal, maxpagesize=10', 15, { size: 10, rest: 5 }],
  [1000, 'odata.maxpagesize=5000', undefined, { size: 1000, rest: undefined }],
  [1000, 'odata.maxpagesize=0', undefined, { size: 1, rest: undefined }],
])('a service page of %i with preference %s and top %s', (server, prefer, top, expected) => {
  expect(pageSize(server, prefer, top)).toEqual(expected)
})

test.each([
  [0, { size: 2, rest: undefined }, { rows: [1, 2], more: true }],
  [1, { size: 2, rest: undefined }, { rows: [2, 3], more: false }],
  [0, { size: 3, rest: undefined }, { rows: [1, 2, 3], more: false }],
  [0, { size: 2, rest: 0 }, { rows: [1, 2], more: false }],
  [0, { size: 2, rest: 1 }, { rows: [1, 2], more: true }],
  [9, { size: 2, rest: undefined }, { rows: [], more: false }],
  [0, { size: 0, rest: 0 }, { rows: [], more: false }],
])('after %i rows a page of %j', (skip, size, expected) => {
  expect(takePage([1, 2, 3], skip, size)).toEqual(expected)
})

test('one row beyond the page is looked at, and no more', () => {
  let seen = 0
  function* rows(): Generator<number> {
    for (;;) yield (seen += 1)
  }
  expect(takePage(rows(), 2, { size: 3, rest: undefined })).toEqual({ rows: [3, 4, 5], more: true })
  expect(seen).toBe(6)
})

test('the next link keeps the options but those that the first page used up', () => {
  const options = { skip: 4, top: 9, count: true, orderby: [] }
  expect(nextLink('http://host/V3/Set', { ...options, skiptoken: '1' }, 3, '7.8.0')).toBe(
    'http://host/V3/Set?$orderby=&$top=3&$skiptoken=7.8.0',
  )
  expect(nextLink('http://host/V3/Set', { top: 9 }, undefined, 'x')).toBe('http://host/V3/Set?$skiptoken=x')
})
