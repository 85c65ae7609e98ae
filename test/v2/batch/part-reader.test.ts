import { describe, expect, it } from 'vitest'

import { PartReader } from '../../../src/v2/batch/part-reader.ts'
import type { PartHead } from '../../../src/v2/http-part/head.ts'
import { readHeaders } from '../../../src/v2/http-part/headers.ts'
import { defaultBatchLimits } from '../../../src/v2/limits.ts'
import { crlf } from '../support/crlf.ts'
import { faultOf } from '../support/fault-of.ts'

const MIME = 'Content-Type: application/http\n'
const HTTP = 'POST AttendanceRecords HTTP/1.1\nPrefer: return=minimal\n'
const limits = { ...defaultBatchLimits, maxPartHeaderBytes: 150 }

/** Reads `first`, then asks whether `second` reads like it. */
function alike(first: string, second: string): PartHead | undefined {
  const [one, two] = [crlf(first), crlf(second)]
  const bytes = Buffer.concat([one, two])
  const reader = new PartReader(bytes, { limits, serviceHosts: undefined })
  const { lines, end } = readHeaders(bytes, 0, one.length, limits, {})
  reader.read(0, lines, end, one.length, {})
  return reader.readAlike(one.length, bytes.length)
}

const part = (id: string, body = '{}'): string => `${MIME}Content-ID: ${id}\n\n${HTTP}\n${body}`

describe('PartReader', () => {
  it('knows no part before the first', () => {
    const reader = new PartReader(crlf(part('1')), { limits, serviceHosts: undefined })
    expect(reader.readAlike(0, 100)).toBeUndefined()
  })

  it.each(['2', '10', '0.0', '<a@b>'])('recognises the same head with the Content-ID %s', (id) => {
    const head = alike(part('1'), part(id))
    expect(head).toMatchObject({ contentId: id, prefersMinimal: true, contentIdInHttp: false })
    expect(head?.bodyStart).toBe(crlf(part('1') + part(id)).length - 2)
  })

  it('recognises the same head without Content-ID', () => {
    const text = `${MIME}\n${HTTP}\n`
    const bodyStart = crlf(`${text}{}${text}`).length
    expect(alike(`${text}{}`, `${text}{"a":1}`)).toMatchObject({ contentId: undefined, bodyStart })
  })

  it('recognises the same head with the Content-ID among the HTTP headers', () => {
    const text = (id: string): string => `${MIME}\n${HTTP}CONTENT-ID:${id}\n\n{}`
    expect(alike(text('1'), text('2'))).toMatchObject({ contentId: '2', contentIdInHttp: true })
  })

  const parsed: [what: string, first: string, second: string][] = [
    ['another header', part('1'), part('2').replace('Prefer', 'Prefix')],
    ['another header before the id', part('1'), part('2').replace('http', 'hTtp')],
    ['another id that is empty', part('1'), part('')],
    ['another id that holds a blank', part('1'), part('2 3')],
    ['another id that is not ASCII', part('1'), part('é')],
    ['another id that holds a control character', part('1'), part('\u007f')],
    ['a first id that holds a blank', part('1 2'), part('3 2')],
    ['a first id that is not ASCII', part('é'), part('é')],
    ['a blank behind the first id', part('1 '), part('2 ')],
    ['a folded id', part('\n 1'), part('\n 2')],
    ['an id in both places', `${MIME}Content-ID: 1\n\n${HTTP}Content-ID: 1\n\n{}`, `${MIME}Content-ID: 2\n\n${HTTP}Content-ID: 1\n\n{}`],
    ['an id that stands twice', `${MIME}Content-ID: 1\nContent-ID: 1\n\n${HTTP}\n{}`, `${MIME}Content-ID: 2\nContent-ID: 1\n\n${HTTP}\n{}`],
    ['an empty id beside the id', `${MIME}Content-ID: 1\n\n${HTTP}Content-ID:\n\n{}`, `${MIME}Content-ID: 2\n\n${HTTP}Content-ID:\n\n{}`],
    ['a part that ends in its head', part('1'), part('2').slice(0, 60)],
    ['a part that ends in its id', part('1'), part('234').slice(0, 44)],
    ['a part that ends before its id', part('1'), MIME],
    ['a head without id that is cut off', `${MIME}\n${HTTP}\n{}`, `${MIME}\n${HTTP}`],
    ['a head over the limit', part('1'), part('1'.repeat(60))],
    ['a first part without a body', `${MIME}\n${HTTP}`, `${MIME}\n${HTTP}Accept: x\n\n{}`],
    ['a first part that ends in a header', `${MIME}\n${HTTP}A: b`, `${MIME}\n${HTTP}A: bc\n\n{}`],
    ['a first part that ends in its id', `${MIME}\n${HTTP}Content-ID: 1`, `${MIME}\n${HTTP}Content-ID: 12\nA: b\n\n{}`],
  ] // prettier-ignore
  it.each(parsed)('leaves to the parser: %s', (_, first, second) => {
    expect(alike(first, second)).toBeUndefined()
  })

  it('batch-wire F27: limits MIME and HTTP headers together', () => {
    expect(faultOf(() => alike(part('1'.repeat(60)), ''))).toMatchObject({ code: 'ADP_LIMIT' })
  })
})
