import { readFile } from 'node:fs/promises'

import { afterAll, beforeAll, describe, expect, it } from 'vitest'

import { type App, createApp } from '../../src/app.ts'
import { AdapterError } from '../../src/errors.ts'
import { createSandbox } from '../../src/sandbox/index.ts'
import { runs } from '../support/long-run.ts'
import { adapterConfig } from '../support/start-adapter.ts'
import { collectBody, decodeBody, decodePieces, type Refusal } from './support/decode-fixture.ts'
import { expectPosts, expectRefusal, expectReply, rewriteReply } from './support/expect-exchange.ts'
import { type Fixture, loadFixtures } from './support/fixture.ts'
import { exchange } from './support/raw-exchange.ts'
import { headerOf } from './support/raw-message.ts'
import { type ScriptedUpstream, startUpstream } from './support/scripted-upstream.ts'

const fixtures = await loadFixtures()
const others = await loadFixtures('others')

/** Returns a body as a string, because strings compare faster than buffers, or the code of a rejection. */
const textOf = (body: Buffer | Refusal): string =>
  Buffer.isBuffer(body) ? body.toString('latin1') : body.code

/**
 * The limits that decide where a body is cut. A body of up to `short` bytes is cut at every offset. A longer body has many similar parts,
 * so it is cut at every offset of its first `head` and last `tail` bytes, and at every `STEP`th offset between them.
 */
type Dense = readonly [short: number, head: number, tail: number]
const usual: Dense = [1_500, 1_200, 300]
const sparse: Dense = [200, 100, 100]
const STEP = runs(7, 1)

function* cutsOf(length: number, [short, head, tail] = usual): Generator<number> {
  const isDense = (cut: number): boolean => length <= short || cut < head || cut >= length - tail
  for (let cut = 0; cut < length; cut += 1) if (isDense(cut) || cut % STEP === 0) yield cut
}

/** Returns true if the decoder rejects the first bytes of a body, `front`, with an `AdapterError`. */
function isRefused(fixture: Fixture, front: Buffer): boolean {
  try {
    decodeBody(fixture, front)
    return false
  } catch (error) {
    return error instanceof AdapterError
  }
}

/**
 * True if this test run rewrites the expected replies of the fixtures instead of checking them. Read the rewritten replies before you
 * commit them.
 */
const isRewriting = process.env['MARKBRIDGE_REWRITE_FIXTURES'] !== undefined

function throughAdapter(fixture: Fixture): void {
  let upstream: ScriptedUpstream
  let app: App
  let port: number

  beforeAll(async () => {
    upstream = await startUpstream(fixture.posts, fixture.answers)
    const config = adapterConfig(upstream.url, {
      limits: fixture.limits,
      partners: [{ id: 'partner', match: { any: true }, ...fixture.partner }],
    })
    app = createApp(config, { logLevel: 'silent' })
    port = (await app.listen()).port
  })
  afterAll(async () => {
    await app.close()
    await upstream.close()
  })

  it('gets the expected reply, wherever the request is split into several writes', async () => {
    const { bytes } = fixture
    const headEnd = bytes.indexOf('\r\n\r\n') + 4
    const last = bytes.length - 1
    const middle = (headEnd + last) >> 1
    const cuts = [[], [1], [headEnd - 2], [headEnd], [headEnd + 1], [middle], [last], [headEnd, middle, last]]
    for (const own of cuts.filter((places) => places.every((place) => place <= last))) {
      upstream.restart()
      const reply = await exchange(port, bytes, own, (text) => {
        upstream.clientHas(text)
      })
      if (fixture.response !== undefined && isRewriting) await rewriteReply(fixture, reply)
      else if (fixture.response !== undefined) expectReply(reply, fixture.response)
      if (fixture.reject !== undefined) expectRefusal(reply, fixture.reject)
      expectPosts(fixture, upstream)
    }
  })
}

describe.each(fixtures)('fixture $name ($rows): $title', (fixture) => {
  it('decodes to the same result however its bytes arrive (batch-wire F28)', async () => {
    const { body } = fixture.request
    const expected = await decodePieces(fixture, [body])
    if (fixture.reject === undefined) expect(expected).not.toHaveProperty('code')
    else expect(expected).toEqual({ code: fixture.reject.code })
    expect(
      await decodePieces(
        fixture,
        Array.from(body, (byte) => Buffer.of(byte)),
      ),
    ).toEqual(expected)
    const whole = textOf(await collectBody(fixture, [body]))
    const different: number[] = []
    // A body without compression is only concatenated, so fewer cuts suffice.
    const dense = headerOf(fixture.request, 'content-encoding') === undefined ? sparse : usual
    for (const cut of cutsOf(body.length, dense)) {
      const read = await collectBody(fixture, [body.subarray(0, cut), body.subarray(cut)])
      if (textOf(read) !== whole) different.push(cut)
    }
    expect(different).toEqual([])
  })

  const cutOff = async (): Promise<void> => {
    const body = await collectBody(fixture, [fixture.request.body])
    if (!Buffer.isBuffer(body)) throw new Error('the body cannot be read')
    const { boundary, parts } = decodeBody(fixture, body)
    const close = body.indexOf(`--${boundary}--`, parts.at(-1)?.end ?? 0)
    expect(close).toBeGreaterThanOrEqual(0)
    const taken: number[] = []
    for (const length of cutsOf(close + boundary.length + 4))
      if (!isRefused(fixture, body.subarray(0, length))) taken.push(length)
    expect(taken).toEqual([])
  }
  if (fixture.reject === undefined)
    it('is rejected by the decoder if its body is cut off anywhere (batch-wire F8)', cutOff)

  describe('when it is sent through the adapter', () => {
    throughAdapter(fixture)
  })
})

describe.each(others)('fixture $name ($rows): $title', throughAdapter)

it('every rule of docs/protocol.md has a fixture', async () => {
  const rows = new Set([...fixtures, ...others].flatMap((fixture) => fixture.rows))
  const protocol = await readFile('docs/protocol.md', 'utf8')
  const numbered = [...protocol.matchAll(/^\| ([FA]\d+) \|/gm)].map(([, row = '']) => row)
  // F28 needs no fixture of its own, because a test above checks it with every fixture.
  const wanted = [
    ...numbered.filter((row) => row !== 'F28'),
    ...['id rule', 'section 4', 'section 5', 'section 7'],
  ]
  expect(numbered.length).toBeGreaterThan(30)
  expect(wanted.filter((row) => !rows.has(row))).toEqual([])
})

describe('the class register among the fixtures', () => {
  const register = fixtures.find(({ name }) => name === 'class-register')
  if (register === undefined) throw new Error('fixtures/class-register is missing')

  it('has the body that the demonstration posts', async () => {
    expect(register.request.body).toEqual(
      await readFile(new URL('../../fixtures/class-register/body.txt', import.meta.url)),
    )
  })

  it('has ids of the sandbox, except for records 9, 17 and 25', async () => {
    const sandbox = createSandbox({ seed: 1 })
    const { url } = await sandbox.listen()
    const samples = await (await fetch(`${url}/_sandbox/samples`)).text()
    await sandbox.close()
    const { parts } = decodeBody(register, register.request.body)
    const unknown = parts.map(({ record }) => ({
      learner: !samples.includes(record?.Learner ?? 'no record'),
      event: !samples.includes(record?.AttendableEvent ?? 'no record'),
      code: !samples.includes(record?.SchoolAttendanceCode ?? 'no record'),
    }))
    expect(unknown).toEqual(
      Array.from({ length: 30 }, (_, index) => ({
        learner: false,
        event: [9, 25].includes(index + 1),
        code: [17, 25].includes(index + 1),
      })),
    )
  })
})
