import { readFile } from 'node:fs/promises'

import { describe, expect, it, test } from 'vitest'

import { errorRules } from '../../../src/errors.ts'
import { runAtOnce } from '../../../src/http/slices.ts'
import { decodeBatch } from '../../../src/v2/batch/decode-batch.ts'
import { remedies } from '../../../src/v2/inspect/inspect-parts.ts'
import { guessBoundary, inspectBatchInSteps } from '../../../src/v2/inspect/inspect-batch.ts'
import { defaultBatchLimits } from '../../../src/v2/limits.ts'
import { crlf } from '../support/crlf.ts'

const RECORD =
  '{"Present":true,"Absent":false,"Learner":"2b6f0cc9-04d6-4a8b-9c3e-5f1e7a9d2c41",' +
  '"AttendableEvent":"a7c1e2d3-5b4f-4e6a-8d7c-9b0a1f2e3d4c","SchoolAttendanceCode":"9d8e7f6a-1b2c-4d3e-8f9a-0b1c2d3e4f5a"}'
const BATCH =
  '--b\nContent-Type: multipart/mixed; boundary=c\n\n' +
  `--c\nContent-Type: application/http\nContent-ID: 1\n\nPOST AttendanceRecords HTTP/1.1\n\n${RECORD}\n--c--\n--b--\n`
const HEADER = 'multipart/mixed; boundary=b'
const inspectBatch = (...batch: Parameters<typeof inspectBatchInSteps>) =>
  runAtOnce(inspectBatchInSteps(...batch))
const guessed = (bytes: Buffer): string | undefined => runAtOnce(guessBoundary(bytes))

function inspect(bytes: Buffer, contentType: string | undefined = HEADER): unknown[] {
  return inspectBatch(bytes, contentType).findings.map(({ severity, code, offset, part }) => [
    severity,
    code,
    offset,
    part,
  ])
}

describe('inspectBatchInSteps', () => {
  it('returns the decoded batch, and no findings, if the batch follows every rule of the wire format', () => {
    const bytes = crlf(BATCH)
    expect(inspectBatch(bytes, HEADER)).toEqual({ batch: decodeBatch(bytes, HEADER), findings: [] })
  })

  const json = crlf(BATCH).indexOf('{')
  const rows: [what: string, bytes: Buffer, contentType: string, findings: unknown[]][] = [
    ['bare line feeds', Buffer.from(BATCH), HEADER, [['warning', 'bareLf', 3, undefined]]],
    ['nothing for line feeds inside a record', Buffer.from(crlf(BATCH).toString().replace(',', ',\n')), HEADER, []],
    ['a bare line feed after the last record', Buffer.from(crlf(BATCH).toString().replace(',', ',\n').replace('--c--\r', '--c--')), HEADER, [['warning', 'bareLf', crlf(BATCH).indexOf('--c--') + 6, undefined]]],
    ['a bare line feed at the start of the body', Buffer.concat([Buffer.from('\n'), crlf(BATCH)]), HEADER, [['warning', 'bareLf', 0, undefined]]],
    ['a byte order mark', crlf(`\ufeff${BATCH}`), HEADER, [['note', 'byteOrderMark', 0, undefined]]],
    ['a quoted boundary', crlf(BATCH), 'multipart/mixed; Boundary = "b"', [['note', 'quotedBoundary', undefined, undefined]]],
    ['ids that differ', crlf(BATCH), 'multipart/mixed; boundary=other', [['warning', 'idsDiffer', undefined, undefined]]],
    ["the changeset's boundary in the header", crlf(BATCH), 'multipart/mixed; boundary=c', [['note', 'boundaryIsNotOuter', undefined, undefined]]],
    ['faults of a record', crlf(BATCH.replace('true', '1').replace('2b6f0cc9', 'x')), HEADER, [['error', 'ADP_FIELD', json, 1], ['error', 'ADP_FIELD', json, 1]]],
    ['a deviation in a part', crlf(BATCH.replace('Content-ID: 1\n', '')), HEADER, [['note', 'noContentId', json - 'Content-ID: 1\r\n'.length, 1]]],
  ] // prettier-ignore
  it.each(rows)('reports %s', (_, bytes, contentType, findings) => {
    expect(inspect(bytes, contentType)).toEqual(findings)
    expect(inspectBatch(bytes, contentType).batch?.parts).toHaveLength(1)
  })

  it('lists the findings in the header before the findings in the body, which are in order of their offset', () => {
    const bytes = Buffer.from(`\ufeff${BATCH.replace('Content-ID: 1\n', '').replace('true', '1')}`)
    expect(inspect(bytes, 'multipart/mixed; boundary="other"')).toEqual([
      ['note', 'quotedBoundary', undefined, undefined],
      ['warning', 'idsDiffer', undefined, undefined],
      ['note', 'byteOrderMark', 0, undefined],
      ['warning', 'bareLf', 6, undefined],
      ['error', 'ADP_FIELD', bytes.indexOf('{'), 1],
      ['note', 'noContentId', bytes.indexOf('{'), 1],
    ])
  })

  it('reports where the envelope is broken, and the remedy, after all other findings', () => {
    const bytes = Buffer.from(BATCH.replace('--b--', ''))
    const { batch, findings } = inspectBatch(bytes, HEADER)
    expect(batch).toBeUndefined()
    expect(findings).toMatchObject([
      { code: 'bareLf', offset: 3 },
      { severity: 'error', code: 'ADP_TRUNCATED', offset: bytes.length },
    ])
    expect(findings.at(-1)?.remedy).toContain('Send the body whole')
    expect(inspect(crlf(BATCH.replace('application/http', 'a/b')))).toEqual([
      ['error', 'ADP_PART_TYPE', 55, 1],
    ])
    expect(inspectBatch(crlf(BATCH), undefined).findings).toMatchObject([
      { severity: 'error', code: 'ADP_MEDIA_TYPE' },
    ])
  })

  const messageOf = (bytes: Buffer, contentType: string, code: string): string | undefined =>
    inspectBatch(bytes, contentType).findings.find((finding) => finding.code === code)?.message

  it('names both boundaries in the message if the header names another boundary than the body', () => {
    expect(messageOf(crlf(BATCH), 'multipart/mixed; boundary=x', 'idsDiffer')).toMatch(
      /"x".*the boundary "b" and the changeset "c"/,
    )
    expect(messageOf(Buffer.from('--b--'), 'multipart/mixed; boundary=x', 'boundariesDiffer')).toMatch(
      /"x".*"b"/,
    )
    expect(messageOf(crlf(BATCH), 'multipart/mixed; boundary=c', 'boundaryIsNotOuter')).toMatch(/"c".*"b"/)
    const cut = Buffer.from(BATCH.replace('--b--', ''))
    expect(messageOf(cut, 'multipart/mixed; boundary=x', 'boundariesDiffer')).toMatch(/"x".*"b"/)
    expect(messageOf(cut, HEADER, 'boundariesDiffer')).toBeUndefined()
  })

  it('names only the first three of many changesets in the message', () => {
    const changesets = [1, 2, 3, 4, 5].map((n) =>
      BATCH.slice(BATCH.indexOf('--b'), BATCH.indexOf('--b--')).replaceAll(/(=|--)c/g, `$1c${n}`),
    )
    expect(
      messageOf(crlf(`${changesets.join('')}--b--\n`), 'multipart/mixed; boundary=x', 'idsDiffer'),
    ).toContain('the boundary "b" and the changesets "c1", "c2", "c3" and 2 more.')
  })

  it('applies the given limits and host names', () => {
    const limits = { ...defaultBatchLimits, maxPartBytes: 10 }
    expect(inspectBatch(crlf(BATCH), HEADER, { limits }).findings).toMatchObject([
      { code: 'ADP_RECORD_LIMIT' },
    ])
    const absolute = crlf(BATCH.replace('POST ', 'POST http://other/'))
    const options = { serviceHosts: new Set(['own']) }
    expect(inspectBatch(absolute, HEADER, options).findings).toMatchObject([{ code: 'ADP_TARGET' }])
    expect(inspectBatch(absolute, HEADER).findings).toEqual([])
  })
})

const PART = 'Content-Type: application/http\n\nPOST AttendanceRecords HTTP/1.1\n\n{}\n'

test.each<[what: string, body: string, boundary: string | undefined]>([
  ['the outer boundary of a nested batch', `--b\nContent-Type: multipart/mixed; boundary=c\n\n--c\n${PART}--c--\n--b--\n`, 'b'],
  ['a boundary after a byte order mark', `\ufeff--b\n${PART}--b--\n`, 'b'],
  ['a boundary after a long preamble', `${'Prose.\n'.repeat(5_000)}--b\n${PART}--b--\n`, 'b'],
  ['a boundary after prose that looks like a delimiter', `--note\n\n--b\n${PART}--b--\n`, 'b'],
  ['a boundary that is never closed', `--b\n${PART}`, 'b'],
  ['a boundary with a closing delimiter only', '--b--', 'b'],
  ['no boundary in prose', 'a -- b\n -- c\n', undefined],
  ['no boundary in an empty body', '', undefined],
  ['no boundary in lines of dashes', '--\n----\n', undefined],
])('guessBoundary finds %s', (_, body, boundary) => {
  expect(guessed(Buffer.from(body))).toBe(boundary)
}) // prettier-ignore

test('guessBoundary finds the boundary of the class register even if the body is truncated', async () => {
  const body = await readFile(new URL('../../../fixtures/class-register/body.txt', import.meta.url))
  const boundary = 'batch_36522ad7-fc75-4b56-8c71-56071383e77b'
  for (const end of [body.length, 3_000, 60]) expect(guessed(body.subarray(0, end))).toBe(boundary)
})

test('guessBoundary reads each line only once, even if many lines look like delimiters', () => {
  expect(guessed(Buffer.from('--\u00e9\n'.repeat(1_000_000)))).toBeUndefined()
})

it('the remedies cover every error of a batch file and of its request', () => {
  // These errors concern other requests or the connection, so a batch file needs no remedy for them.
  const others = ['ADP_FORBIDDEN', 'ADP_NOT_ACCEPTABLE', 'ADP_QUERY', 'ADP_SLOW_CLIENT']
  const needed = Object.entries(errorRules)
    .filter(([code, rule]) => (rule.class === 'request' || rule.class === 'record') && !others.includes(code))
    .map(([code]) => code)
  expect(Object.keys(remedies).sort()).toEqual(needed.sort())
})
