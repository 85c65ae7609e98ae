import { describe, expect, it } from 'vitest'

import { maskExchange } from '../../../src/compare/recording/mask-credentials.ts'
import { splitMessage } from '../../../src/compare/recording/split-message.ts'
import { createSlicing } from '../../../src/http/slices.ts'
import { markedExchange } from './exchanges.ts'

const type = 'multipart/mixed; boundary=b'

describe('a body in pieces', () => {
  it('is the same bytes in the same order', () => {
    const body = markedExchange().body
    const pieces = [...splitMessage(body, markedExchange().contentType)]
    expect(Buffer.concat(pieces.map(({ bytes }) => bytes)).equals(body)).toBe(true)
    expect(pieces.filter(({ isFraming }) => !isFraming).map(({ bytes }) => bytes.toString()[0])).toEqual([
      '{',
    ])
  })

  it.each([
    ['a head without its blank line', ['--b', '', 'POST /a HTTP/1.1', '--b', '', 'POST /b HTTP/1.1', 'X-Key: SECRET', '', '{}', '--b--']],
    ['a boundary that is named nowhere', ['--other', '', 'POST /a HTTP/1.1', '', '{}', '--other', '', 'POST /b HTTP/1.1', 'X-Key: SECRET', '', '{}', '--other--']],
    ['a content that is not JSON', ['--b', '', 'POST /a HTTP/1.1', '', 'GET /c HTTP/1.1', '', 'x', '--b', 'X-Key: SECRET', '', '--b--']],
    ['an empty content', ['--b', '', 'POST /a HTTP/1.1', '', '--b', 'X-Key: SECRET', '', 'POST /b HTTP/1.1', '', '{}', '--b--']],
  ])('shows no credential after %s', async (_name, lines) => {
    const body = Buffer.from(lines.join('\r\n'))
    const masked = await maskExchange(markedExchange({ body, contentType: type }), createSlicing().open())
    expect(masked.body.length).toBe(body.length)
    expect(masked.body.toString()).not.toContain('SECRET')
  }) // prettier-ignore

  it.each([
    ['heads that never end', 'A B HTTP/1.1\r\n'],
    ['delimiters', '--b\r\n'],
    ['other delimiters', '\r\n\r\nA B HTTP/1.1\r\n\r\n--c\r\n'],
    ['boundaries', 'boundary="\r\n'],
  ])('is split in linear time: %s', (_name, line) => {
    const body = Buffer.from(line.repeat(100_000))
    const beganMs = performance.now()
    expect([...splitMessage(body, type)].length).toBeGreaterThan(0)
    expect(performance.now() - beganMs).toBeLessThan(2_000)
  })
})
