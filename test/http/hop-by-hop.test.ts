import { describe, expect, it } from 'vitest'

import { connectionOptions, hopByHopHeaders } from '../../src/http/hop-by-hop.ts'

describe('connectionOptions', () => {
  const rows: [header: string | string[] | undefined, names: string[]][] = [
    [undefined, []],
    ['close', ['close']],
    ['Keep-Alive, X-Own ,', ['keep-alive', 'x-own']],
    [
      ['close', 'X-A,X-B'],
      ['close', 'x-a', 'x-b'],
    ],
  ]
  it.each(rows)('reads the names in Connection %j', (header, names) => {
    expect(connectionOptions(header)).toEqual(names)
  })
})

describe('hopByHopHeaders', () => {
  it('holds the fields of one hop and no field of the message', () => {
    const names = [
      'connection',
      'transfer-encoding',
      'upgrade',
      'content-length',
      'content-type',
      'authorization',
    ]
    expect(names.filter((name) => hopByHopHeaders.has(name))).toEqual(names.slice(0, 3))
  })
})
