import fc from 'fast-check'
import { describe, expect, it } from 'vitest'

import { AdapterError } from '../../../src/errors.ts'
import {
  createReplyIds,
  decodeStoredRequest,
  digestIds,
  digestRequest,
  encodeStoredRequest,
  type WriteRequest,
} from '../../../src/proxy/writes/stored-request.ts'

const request: WriteRequest = {
  kind: 'batch',
  contentType: 'multipart/mixed; boundary=x',
  serviceHosts: ['a', 'b'],
  context: 'http://a/$metadata#x',
  layout: 'flat',
  dataEnvelope: false,
  msgtypeResponse: true,
  prefer: '',
  accept: '',
}

describe('a stored request', () => {
  it('is read back as it was, whatever its bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), fc.uuid(), (bytes, replyId) => {
        const stored = { request, replyId, body: Buffer.from(bytes) }
        expect(decodeStoredRequest(encodeStoredRequest(stored))).toEqual(stored)
      }),
    )
    const without = {
      request: { ...request, contentType: undefined },
      replyId: 'r',
      body: Buffer.from('\n\n'),
    }
    expect(decodeStoredRequest(encodeStoredRequest(without))).toEqual(without)
  })

  it('that is none is an error of its own', () => {
    expect(() => decodeStoredRequest(Buffer.from('nothing'))).toThrow(AdapterError)
  })
})

it('digests owner, service, boundary and bytes', () => {
  const digest = (owner: string, upstream: string, boundary: string | undefined, body: string): string =>
    digestRequest(owner, upstream, boundary, Buffer.from(body)).toString('hex')
  expect(digest('o', 'u', 'x', 'b')).toBe(digest('o', 'u', 'x', 'b'))
  const all = [
    digest('o', 'u', 'x', 'b'),
    digest('p', 'u', 'x', 'b'),
    digest('o', 'v', 'x', 'b'),
    digest('o', 'u', 'y', 'b'),
    digest('o', 'u', undefined, 'b'),
    digest('o', 'u', 'x', 'c'),
  ]
  expect(new Set(all).size).toBe(6)
})

it('digests the owner with every id of a batch', () => {
  const digest = (owner: string, boundary: string, ...envelope: string[]): string =>
    digestIds(owner, { boundary, envelope }).toString('hex')
  expect(digest('o', 'b', 'b', 'c')).toBe(digest('o', 'b', 'b', 'c'))
  const all = [
    digest('o', 'b', 'b', 'c'),
    digest('p', 'b', 'b', 'c'),
    digest('o', 'x', 'b', 'c'),
    digest('o', 'b', 'b'),
  ]
  expect(new Set(all).size).toBe(4)
})

it('makes guids that follow from one, all different', () => {
  const id = '0f3c2a10-0000-4000-8000-0000fffffffe'
  const next = createReplyIds(id)
  const ids = Array.from({ length: 4 }, next)
  expect(ids[0]).toBe(id)
  expect(new Set(ids).size).toBe(4)
  for (const one of ids) expect(one).toMatch(/^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/)
  const again = createReplyIds(id)
  expect(Array.from({ length: 4 }, again)).toEqual(ids)
})
