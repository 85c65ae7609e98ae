import fc from 'fast-check'
import { describe, expect, it } from 'vitest'

import { AdapterError } from '../../src/errors.ts'
import { createSlicing } from '../../src/http/slices.ts'
import {
  createReplyIds,
  decodeStoredRequest,
  digestIds,
  digestRequest,
  encodeStoredRequest,
  type WriteRequest,
} from '../../src/writes/stored-request.ts'

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

const slices = createSlicing().open()

describe('decodeStoredRequest', () => {
  it('returns the request that encodeStoredRequest encoded, with any body', async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 200 }), fc.uuid(), async (bytes, replyId) => {
        const stored = { request, replyId, sender: 'hash', body: Buffer.from(bytes) }
        expect(decodeStoredRequest(await encodeStoredRequest(stored, slices))).toEqual(stored)
      }),
    )
    const without = {
      request: { ...request, contentType: undefined },
      replyId: 'r',
      sender: undefined,
      body: Buffer.from('\n\n'),
    }
    expect(decodeStoredRequest(await encodeStoredRequest(without, slices))).toEqual(without)
  })

  it('returns a large request unchanged from the shared memory to which encodeStoredRequest wrote it', async () => {
    const stored = { request, replyId: 'r', sender: undefined, body: Buffer.alloc(3_000_000, 'abc') }
    const bytes = await encodeStoredRequest(stored, slices)
    expect(bytes.buffer).toBeInstanceOf(SharedArrayBuffer)
    expect(decodeStoredRequest(bytes).body.equals(stored.body)).toBe(true)
  })

  it('throws an AdapterError for an invalid stored request', () => {
    expect(() => decodeStoredRequest(Buffer.from('nothing'))).toThrow(AdapterError)
  })
})

it('digestRequest depends on the owner, the service, the boundary and the body', async () => {
  const digest = async (
    owner: string,
    upstream: string,
    boundary: string | undefined,
    body: string,
  ): Promise<string> =>
    (await digestRequest(owner, upstream, boundary, Buffer.from(body), slices)).toString('hex')
  expect(await digest('o', 'u', 'x', 'b')).toBe(await digest('o', 'u', 'x', 'b'))
  const all = [
    digest('o', 'u', 'x', 'b'),
    digest('p', 'u', 'x', 'b'),
    digest('o', 'v', 'x', 'b'),
    digest('o', 'u', 'y', 'b'),
    digest('o', 'u', undefined, 'b'),
    digest('o', 'u', 'x', 'c'),
  ]
  expect(new Set(await Promise.all(all)).size).toBe(6)
})

it('digestIds depends on the owner and on every id of a batch', () => {
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

it('createReplyIds derives the same series of different ids from the same id of a reply', () => {
  const id = '0f3c2a10-0000-4000-8000-0000fffffffe'
  const next = createReplyIds(id)
  const ids = Array.from({ length: 4 }, next)
  expect(ids[0]).toBe(id)
  expect(new Set(ids).size).toBe(4)
  for (const one of ids) expect(one).toMatch(/^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/)
  const again = createReplyIds(id)
  expect(Array.from({ length: 4 }, again)).toEqual(ids)
})
