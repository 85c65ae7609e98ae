import { describe, expect, it } from 'vitest'

import { runAtOnce } from '../../../src/http/slices.ts'
import { decodeBatch } from '../../../src/v2/batch/decode-batch.ts'
import { type Finding, inspectParts } from '../../../src/v2/inspect/inspect-parts.ts'
import { crlf } from '../support/crlf.ts'

const MIME = 'Content-Type: application/http\n'
const LINE = 'POST AttendanceRecords HTTP/1.1\n'
const record = (learner: number, more = ''): string =>
  `{"Present":true,"Absent":false,"Learner":"0000000${learner}-04d6-4a8b-9c3e-5f1e7a9d2c4a",` +
  `"AttendableEvent":"a7c1e2d3-5b4f-4e6a-8d7c-9b0a1f2e3d4c","SchoolAttendanceCode":"9d8e7f6a-1b2c-4d3e-8f9a-0b1c2d3e4f5a"${more}}`
const part = (id: number, http = '', json = record(id), mime = ''): string =>
  `--c\n${MIME}Content-ID: ${id}\n${mime}\n${LINE}${http}\n${json}\n`

function inspect(parts: string, changesetHead = ''): readonly Finding[] {
  const bytes = crlf(
    `--b\nContent-Type: multipart/mixed; boundary=c\n${changesetHead}\n${parts}--c--\n--b--\n`,
  )
  return runAtOnce(inspectParts(bytes, decodeBatch(bytes, 'multipart/mixed; boundary=b')))
}

describe('inspectParts', () => {
  it('reports nothing for parts in the legacy form', () => {
    const exact = `Content-Length: ${record(2).length}\n`
    expect(inspect(part(1) + part(2, exact))).toEqual([])
  })

  it('ignores apostrophes within double quotes', () => {
    expect(inspect(part(1, '', record(1, `,"Comment":"it's \\"so\\", isn't it"`)))).toEqual([])
  })

  it('compares the size of the record with the Content-Length of the HTTP headers, not of the MIME headers', () => {
    const mimeLength = 'Content-Length: 900\n'
    const exact = `Content-Length: ${record(1).length}\n`
    expect(inspect(part(1, exact, record(1), mimeLength), mimeLength)).toEqual([])
    expect(inspect(part(1, '', record(1), mimeLength))).toEqual([])
  })

  const rows: [what: string, parts: string, finding: unknown[]][] = [
    ['a part without a Content-ID', part(1) + part(2).replace('Content-ID: 2\n', ''), ['noContentId', 2]],
    ['a part with credentials of its own', part(1, 'authorization: bearer x\n'), ['innerHeadersIgnored', 1]],
    ['a part with forwarding headers of its own', part(1, 'X-Forwarded-For: x\n'), ['innerHeadersIgnored', 1]],
    ['a Content-Length that counts characters', part(1, `Content-Length: ${record(1, ',"Comment":"é"').length}\n`, record(1, ',"Comment":"é"')), ['wrongContentLength', 1]],
    ['strings in single quotes', part(1) + part(2, '', record(2).replaceAll('"', "'")), ['singleQuotes', 2]],
    ['strings in single quotes in a record that is refused', part(1, '', "{'Comment':'it's'}"), ['singleQuotes', 1]],
    ['a record that is both present and absent', part(1, '', record(1).replace('false', 'true')), ['presentAndAbsent', 1]],
    ['members outside the V2 write form', part(1, '', record(1, ',"Room":1')) + part(2, '', record(2, ',"Room":1')) + part(3, '', record(3, ',"Room":1')), ['unmappedFields', 1]],
    ['two parts with the same Content-ID', part(1) + part(2) + part(2, '', record(3)) + part(2, '', record(4)), ['repeatedContentId', 3]],
    ['two records for the same learner and event', part(1) + part(2, '', record(1).replace('4a"', '4A"')), ['repeatedRecord', 2]],
  ] // prettier-ignore
  it.each(rows)('reports %s', (_, parts, finding) => {
    expect(inspect(parts).map(({ code, part: position }) => [code, position])).toEqual([finding])
  })

  it('says in the message how many other parts have the same finding', () => {
    const [finding] = inspect([1, 2, 3].map((id) => part(id, '', record(id, ',"Room":1'))).join(''))
    expect(finding?.message).toMatch(/^Part 1 .* 2 more parts\.$/)
  })

  it('reports no repeated records if the records cannot be read', () => {
    expect(inspect(part(1, '', '{}') + part(2, '', '{}'))).toEqual([])
  })

  it('reports a batch whose parts are in no changeset, and a batch without parts', () => {
    const flat = crlf(part(1).replace('--c', '--b') + '--b--')
    const codesOf = (bytes: Buffer): string[] =>
      runAtOnce(inspectParts(bytes, decodeBatch(bytes, 'multipart/mixed; boundary=b'))).map(
        ({ code }) => code,
      )
    expect(codesOf(flat)).toEqual(['noChangeset'])
    expect(codesOf(Buffer.from('--b--'))).toEqual(['emptyBatch'])
  })

  it('never repeats a value of a record in a finding', () => {
    const found = JSON.stringify(inspect(part(1, 'Cookie: secret\n', record(1, ',"Room":"secret"'))))
    expect(found).not.toMatch(/secret|04d6/)
  })
})
