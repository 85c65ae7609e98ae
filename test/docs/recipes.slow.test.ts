import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'

import { describe, expect, it, onTestFinished } from 'vitest'

import { type Mark, marksOf, type Service, startService } from '../clients/support/start-service.ts'
import { journalFile } from '../e2e/support/journal-file.ts'
import { startFaultProxy } from '../faults/proxy/fault-proxy.ts'
import { makeFolder } from '../journal/open-sqlite.ts'
import { replyWithBytes, startRawUpstream } from '../support/raw-upstream.ts'
import { replyWith, startUpstream } from '../support/scripted-upstream.ts'
import { isMissing, onV3, recipes, type Settings, useRecipe } from './recipes.ts'

const settingsOf = (root: string): Settings => ({ V2_URL: root, V2_KEY: 'sandbox', V2_TOKEN: 'sandbox' })

async function fileOf(text: string): Promise<string> {
  const path = join(await makeFolder(), 'register.jsonl')
  await writeFile(path, text)
  return path
}
const fileOfMarks = (marks: readonly Mark[]): Promise<string> =>
  fileOf(marks.map((mark) => `${JSON.stringify(mark)}\n`).join(''))

/** Starts a proxy that loses the first reply of the adapter. Returns the URL of the V2 service through the proxy. */
async function loseReply({ adapter, root }: Service): Promise<string> {
  let lost = false
  const proxy = await startFaultProxy({
    targets: [adapter.port],
    plan: {
      connection: () => 'pass',
      request: () => {
        const kind = lost ? 'pass' : 'resetAfter'
        lost = true
        return { kind }
      },
    },
  })
  onTestFinished(() => proxy.close())
  return root.replace(adapter.url, proxy.url)
}

/**
 * Starts a service that refuses the first batches with these refusals, one for each batch, and accepts later batches. If the
 * status is 200, only the part of the record has the refusal. A code that begins with `<` is the HTML page of another server. `seen`
 * returns the media type and the body of each request.
 */
async function startRefusing(refusals: readonly (readonly [status: number, code: string])[]) {
  const replyOf = (part: string) =>
    replyWith(
      200,
      `--batchresponse_1\r\nContent-Type: application/http\r\n\r\nHTTP/1.1 ${part}\r\n--batchresponse_1--\r\n`,
      { 'Content-Type': 'multipart/mixed; boundary=batchresponse_1' },
    )
  const upstream = await startUpstream((seen, response) => {
    const [status, code] = refusals[seen.index] ?? []
    if (status === undefined) return replyOf('201 Created\r\n\r\n{}')(seen, response)
    if (code?.startsWith('<') === true)
      return replyWith(status, code, { 'Content-Type': 'text/html' })(seen, response)
    if (status === 200) return replyOf(`503 Unavailable\r\n\r\n[{"ErrorCode":"${code}"}]`)(seen, response)
    return replyWith(status, { error: { code } }, { 'Retry-After': '0' })(seen, response)
  })
  return {
    settings: settingsOf(upstream.url),
    seen: () => upstream.seen.map(({ headers, body }) => `${headers['content-type'] ?? ''}\n${body}`),
  }
}

/** Runs the rows of one test concurrently, because each row starts its own program. */
const each = <Row, Result>(rows: readonly Row[], act: (row: Row) => Promise<Result>): Promise<Result[]> =>
  Promise.all(rows.map(act))

describe.each(recipes)('docs/recipes/$name', (recipe) => {
  const missing = isMissing(recipe)
  const test = it.skipIf(missing)
  const run = useRecipe(recipe, missing)

  test('resends a batch after a lost reply, prints the outcome of each record and exits with status 1, in both layouts', async () => {
    await each(['flat', 'nested'], async (layout) => {
      const service = await startService({ layout }, {}, { journal: journalFile() })
      const lines = service.expected.map(({ status, codes = [] }, index) =>
        [index + 1, status, ...codes].join(' '),
      )
      const settings = settingsOf(await loseReply(service))
      expect(await run(settings, await fileOfMarks(service.register))).toMatchObject({
        code: 1,
        out: `${lines.join('\n')}\n`,
      })
      expect(service.adapter.events().filter(({ replayed }) => replayed === true)).toHaveLength(1)
      expect(await service.acceptedMarks()).toEqual(marksOf(service.expected))
    })
  })

  test('exits with status 1 if the whole request is refused, and with status 0 if every record is written', async () => {
    const service = await startService()
    const settings = settingsOf(service.root)
    const refused = await run({ ...settings, V2_TOKEN: 'nobody' }, await fileOfMarks(service.register))
    expect([refused.code, refused.out]).toEqual([1, ''])
    expect(refused.err).toContain('refused as a whole: 401 {"statusCode":401')
    expect(await service.acceptedMarks()).toEqual([])
    const marks = marksOf(service.expected)
    const file = await fileOf(`\n${marks.map((mark) => `${JSON.stringify(mark)}\r\n`).join('')}\n`)
    const out = marks.map((_, index) => `${index + 1} 201\n`).join('')
    expect(await run(settings, file)).toEqual({ code: 0, out, err: '' })
    expect(await service.acceptedMarks()).toEqual(marks)
  })

  test('resends the same bytes and boundary if a resend cannot write a record twice', async () => {
    const file = await fileOf('{}\n')
    const rows = [
      [
        [503, 'ADP_OVERLOADED'],
        [504, 'ADP_OUTCOME_UNKNOWN'],
        [504, 'ADP_JOURNAL_LOST'],
      ],
      [
        [200, 'ADP_UPSTREAM_UNAVAILABLE'],
        [200, 'ADP_BUDGET_EXCEEDED'],
        [200, 'ADP_OUTCOME_UNKNOWN'],
      ],
      [
        [502, '<html>Bad Gateway</html>'],
        [504, '<html>Gateway Timeout</html>'],
        [200, '<html>Sign in to this network</html>'],
      ],
      [
        [200, 'ADP_OVERLOADED'],
        [200, 'ADP_JOURNAL_UNAVAILABLE'],
        [408, '<html>\n{ Request Timeout }\n</html>'],
      ],
    ] as const
    await each(rows, async (refusals) => {
      const { settings, seen } = await startRefusing(refusals)
      expect(await run(settings, file)).toEqual({ code: 0, out: '1 201\n', err: '' })
      expect(seen()).toHaveLength(4)
      expect(new Set(seen()).size).toBe(1)
      // The batch and the changeset have the same id (service.md 4.2).
      expect(seen()[0]).toMatch(
        /^multipart\/mixed; ?boundary="?batch_([\w-]{36})"?\n[^]*--changeset_\1--\r\n/,
      )
      // A second run of the recipe creates another batch id.
      await run(settings, file)
      expect(new Set(seen()).size).toBe(2)
    })
  })

  test('limits its resends, and never resends a batch that V2 refused or may apply twice', async () => {
    const file = await fileOf('{}\n')
    const rows = [
      [504, 'ADP_V2_OUTCOME_UNKNOWN', 1],
      [400, 'ADP_TRUNCATED', 1],
      [500, 'ADP_INTERNAL', 1],
      [503, 'ADP_UPSTREAM_UNAVAILABLE', 4],
      [200, 'ATT_SYS_1', 1],
      [200, 'ADP_OUTCOME_UNKNOWN', 4],
    ] as const
    await each(rows, async ([status, code, count]) => {
      const { settings, seen } = await startRefusing(Array.from({ length: 9 }, () => [status, code] as const))
      const result = await run(settings, file)
      const [out, err] =
        status === 200
          ? [`1 503 ${code}\n`, '']
          : ['', `refused as a whole: ${status} {"error":{"code":"${code}"`]
      expect([result.code, result.out, seen().length]).toEqual([1, out, count])
      expect(result.err).toContain(err)
      if (err === '') expect(result.err).toBe('')
    })
  })

  test('exits with status 1, and prints no token, if it gets no complete reply', async () => {
    const head = 'HTTP/1.1 200 OK\r\nContent-Type: multipart/mixed; boundary=x\r\n'
    const breaksOff = await startRawUpstream(
      replyWithBytes(`${head}Content-Length: 500\r\n\r\n--batchresponse_1\r\n`, true),
    )
    const file = await fileOf('{}\n')
    const balancer = await startRefusing(
      Array.from({ length: 4 }, () => [502, '<html>Bad Gateway</html>'] as const),
    )
    const urls = [breaksOff.url, balancer.settings.V2_URL, 'http://127.0.0.1:1']
    await each(urls, async (url = '') => {
      const { code, out, err } = await run({ ...settingsOf(url), V2_TOKEN: 'secret-token' }, file)
      expect([code, out]).toEqual([1, ''])
      expect(err).toMatch(/no answer.*: look up what was written before you post again/)
      expect(err).not.toContain('secret-token')
    })
  })

  test('sends a batch only once if V2_REPEATS is 0', async () => {
    const file = await fileOf('{}\n')
    const rows = [
      [502, '<html>Bad Gateway</html>'],
      [503, 'ADP_OVERLOADED'],
      [200, 'ADP_OUTCOME_UNKNOWN'],
    ] as const
    await each(rows, async (refusal) => {
      const { settings, seen } = await startRefusing([refusal])
      expect((await run({ ...settings, V2_REPEATS: '0' }, file)).code).toBe(1)
      expect(seen()).toHaveLength(1)
    })
  })

  test('exits with status 2 and prints its usage if the address, the token, the records or the file is missing', async () => {
    const settings = settingsOf('http://127.0.0.1:1')
    const [record, blank] = [await fileOf('{}\n'), await fileOf('\n \n')]
    const rows: [Settings, string][] = [
      [{ ...settings, V2_URL: '' }, record],
      [{ V2_URL: 'http://127.0.0.1:1', V2_KEY: 'k' }, record],
      [settings, blank],
      [settings, '/no/such/file'],
    ]
    await each(rows, async ([given, file]) => {
      const { code, out, err } = await run(given, file)
      expect([code, out]).toEqual([2, ''])
      expect(err).toMatch(/\nusage: V2_URL=… V2_KEY=… V2_TOKEN=… .*FILE/)
    })
  })
})

describe.each(recipes.map(onV3))('docs/recipes/$name', (recipe) => {
  const missing = isMissing(recipe)
  const test = it.skipIf(missing)
  const run = useRecipe(recipe, missing)
  const settingsOn = ({ sandbox }: Service): Settings => ({
    V3_URL: `${sandbox.url}/Attendance/V3`,
    V3_KEY: 'sandbox',
    V3_TOKEN: 'sandbox',
  })

  test('posts the register of the V2 recipe to V3 with the same outcomes, and resends a record only after 429 and 503', async () => {
    const service = await startService()
    const lines = service.expected.map(({ status, codes = [] }, index) =>
      [index + 1, status, ...codes].join(' '),
    )
    await service.sandbox.put('faults', [
      { kind: 'rateLimit', retryAfterSeconds: 0, method: 'POST', count: 1 },
      { kind: 'status', status: 503, method: 'POST', skip: 1, count: 1 },
    ])
    const { code, out, err } = await run(settingsOn(service), await fileOfMarks(service.register))
    expect([code, out, err]).toEqual([1, `${lines.join('\n')}\n`, ''])
    expect(await service.acceptedMarks()).toEqual(marksOf(service.expected))
    const good = await fileOfMarks(marksOf(service.expected))
    expect((await run(settingsOn(service), good)).code).toBe(0)
  })

  test('does not resend a record whose response was lost', async () => {
    const service = await startService()
    const [mark] = marksOf(service.expected)
    const file = await fileOfMarks(mark === undefined ? [] : [mark])
    await service.sandbox.put('faults', { kind: 'reset', apply: true, method: 'POST', count: 1 })
    expect(await run(settingsOn(service), file)).toMatchObject({ code: 1, out: '1 unknown\n' })
    expect(await service.acceptedMarks()).toHaveLength(1)
    await service.sandbox.put('faults', { kind: 'status', status: 500, method: 'POST', count: 1 })
    expect(await run(settingsOn(service), file)).toMatchObject({ code: 1, out: '1 unknown\n' })
    const denied = await run({ ...settingsOn(service), V3_TOKEN: 'nobody' }, file)
    expect([denied.code, denied.out]).toEqual([1, expect.stringMatching(/^1 401\b/)])
    expect((await run({ V3_KEY: 'sandbox' }, file)).code).toBe(2)
  })
})
