import fc from 'fast-check'
import { expect, it } from 'vitest'

import { createBatchEncoder, type PartReply } from '../../src/v2/index.ts'
import { readMultipart, readPart, type WrittenPart } from './support/read-multipart.ts'

const reply = fc.record({
  contentId: fc.option(fc.constantFrom('1', '0.0', '<é>', 'a b'), { nil: undefined }),
  contentIdInHttp: fc.boolean(),
  status: fc.constantFrom(201, 400, 405, 503, 504),
  json: fc.oneof(
    fc.jsonValue().map((value) => JSON.stringify(value)),
    fc.constant(undefined),
  ),
})

/** Part replies in the order of a batch. The changeset numbers increase, and parts without a changeset may occur between changesets. */
const replies = fc.array(fc.tuple(reply, fc.constantFrom(0, 0, 1, 2), fc.boolean())).map((rows) => {
  let changeset = 0
  let inside = false
  const list = rows.map(([own, step, outside]): PartReply => {
    if (outside) inside = false
    else if (!inside || step > 0) [changeset, inside] = [changeset + Math.max(1, step), true]
    const contentIdInHttp = own.contentId !== undefined && own.contentIdInHttp
    return { ...own, contentIdInHttp, changeset: outside ? undefined : changeset }
  })
  return { list, changesets: changeset + (rows.length % 3) }
})

function toReply(part: WrittenPart, changeset: number | undefined): PartReply {
  const id = part.headers['Content-ID']
  const { 'Content-Type': type, 'Content-Transfer-Encoding': encoding } = part.headers
  expect([type, encoding]).toEqual(['application/http', 'binary'])
  const lineEnd = part.content.indexOf('\r\n')
  const status = /^HTTP\/1\.1 (\d{3}) \S/.exec(part.content)?.[1]
  const http = readPart(part.content.slice(lineEnd + 2))
  const hasJson = http.headers['Content-Type'] !== undefined
  if (hasJson) expect(http.headers['Content-Type']).toBe('application/json; odata.metadata=minimal')
  if (hasJson) expect(http.headers['Content-Length']).toBe(String(Buffer.byteLength(http.content)))
  expect(http.content).not.toContain('\n')
  return {
    contentId: id,
    contentIdInHttp: http.headers['Content-ID'] !== undefined && http.headers['Content-ID'] === id,
    changeset,
    status: Number(status),
    json: hasJson ? http.content : undefined,
  }
}

it('the batch encoder writes a flat reply that an independent reader decodes to the same parts (batch-wire A2 to A4, A6)', () => {
  fc.assert(
    fc.property(replies, ({ list, changesets }) => {
      const encoder = createBatchEncoder('flat', () => 'id')
      const body = list.map((own) => encoder.part(own)).join('') + encoder.close(changesets)
      expect(body.endsWith('--batchresponse_id--\r\n')).toBe(true)
      const parts = readMultipart(body, 'batchresponse_id')
      expect(parts.map((part) => toReply(part, undefined))).toEqual(
        list.map((own) => ({ ...own, changeset: undefined })),
      )
    }),
  )
})

it('the batch encoder writes a nested reply that an independent reader decodes to the same changesets (batch-wire A6)', () => {
  fc.assert(
    fc.property(replies, ({ list, changesets }) => {
      let count = 0
      const encoder = createBatchEncoder('nested', () => String((count += 1)))
      const body = list.map((own) => encoder.part(own)).join('') + encoder.close(changesets)
      let changeset = 0
      const read = readMultipart(body, 'batchresponse_1').flatMap((part) => {
        const inner = /^multipart\/mixed; boundary=(changesetresponse_\d+)$/.exec(
          part.headers['Content-Type'] ?? '',
        )?.[1]
        if (inner === undefined) return [toReply(part, undefined)]
        changeset += 1
        return readMultipart(part.content, inner).map((own) => toReply(own, changeset))
      })
      expect(read).toEqual(list)
      expect(changeset).toBe(changesets)
    }),
  )
})
