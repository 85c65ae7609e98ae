import { readFile } from 'node:fs/promises'

import { expect, test } from 'vitest'

import { firstBoundary, guessBoundary } from '../../../src/v2/inspect/guess-boundary.ts'

const PART = 'Content-Type: application/http\n\nPOST AttendanceRecords HTTP/1.1\n\n{}\n'

test.each<[what: string, body: string, boundary: string | undefined]>([
  ['the outer one of an envelope', `--b\nContent-Type: multipart/mixed; boundary=c\n\n--c\n${PART}--c--\n--b--\n`, 'b'],
  ['one behind a byte order mark', `\ufeff--b\n${PART}--b--\n`, 'b'],
  ['one behind a long preamble', `${'Prose.\n'.repeat(5_000)}--b\n${PART}--b--\n`, 'b'],
  ['one behind prose that looks like a delimiter', `--note\n\n--b\n${PART}--b--\n`, 'b'],
  ['one that is never closed', `--b\n${PART}`, 'b'],
  ['one that is only closed', '--b--', 'b'],
  ['none in prose', 'a -- b\n -- c\n', undefined],
  ['none in nothing', '', undefined],
  ['none in dashes', '--\n----\n', undefined],
])('finds %s', (_, body, boundary) => {
  expect(guessBoundary(Buffer.from(body))).toBe(boundary)
}) // prettier-ignore

test('finds the boundary of the class register, also where it was cut off', async () => {
  const body = await readFile(new URL('../../../fixtures/class-register/body.txt', import.meta.url))
  const boundary = 'batch_36522ad7-fc75-4b56-8c71-56071383e77b'
  for (const end of [body.length, 3_000, 60]) expect(guessBoundary(body.subarray(0, end))).toBe(boundary)
})

test('reads each line once, however many look like delimiters', () => {
  expect(firstBoundary(Buffer.from('--\u00e9\n'.repeat(1_000_000)))).toBeUndefined()
})
