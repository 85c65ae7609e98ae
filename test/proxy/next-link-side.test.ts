import { describe, expect, it } from 'vitest'

import { takeSideMarker, V2_LINK_SEGMENT } from '../../src/proxy/next-link-side.ts'
import { incomingMessage } from '../support/incoming-message.ts'

describe('takeSideMarker', () => {
  it.each([
    [`${V2_LINK_SEGMENT}/a/V2/x?$skip=1`, 'v2', '/a/V2/x?$skip=1'],
    ['/%7Ev2/V2/x', 'v2', '/V2/x'],
    ['/%7eV2?x', 'v2', '/?x'],
    ['/~v2', 'v2', '/'],
    ['http://adapter.test:80/~v2/V2/x', 'v2', 'http://adapter.test:80/V2/x'],
    ['/~v2/~v2/x', 'v2', '/~v2/x'],
    ['/~v2//x', 'v2', '//x'],
    ['/V2/x', undefined, '/V2/x'],
    ['/~v22/x', undefined, '/~v22/x'],
    ['/a/~v2/x', undefined, '/a/~v2/x'],
    ['/V2/x?u=http://h/~v2/', undefined, '/V2/x?u=http://h/~v2/'],
    ['http://h?/~v2/x', undefined, 'http://h?/~v2/x'],
    ['*', undefined, '*'],
    ['', undefined, ''],
  ])('reads %s', (url, side, rest) => {
    const request = incomingMessage({ url })
    expect([takeSideMarker(request), request.url]).toEqual([side, rest])
  })
})
