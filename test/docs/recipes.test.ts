import { execFileSync, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'

import { describe, expect, it } from 'vitest'

import { type Mark, marksOf, type Service, startService } from '../clients/support/start-service.ts'
import { replyWithBytes, startRawUpstream } from '../support/raw-upstream.ts'
import { replyWith, startUpstream } from '../support/scripted-upstream.ts'

interface Run {
  readonly code: number | null
  readonly out: string
  readonly err: string
}

/** Where the recipes find their settings; an option of the same name wins. */
interface Settings {
  readonly V2_URL?: string
  readonly V2_KEY?: string
  readonly V2_TOKEN?: string
}

const recipes = [
  { name: 'post-register.py', needs: 'python3', command: 'python3' },
  { name: 'post-register.sh', needs: 'curl', command: 'sh' },
]

function isMissing(program: string): boolean {
  try {
    execFileSync(program, ['--version'], { stdio: 'ignore' })
    return false
  } catch (cause) {
    if (cause instanceof Error && 'code' in cause && cause.code === 'ENOENT') return true
    throw cause
  }
}

function run(
  { name, command }: (typeof recipes)[number],
  options: readonly string[],
  settings: Settings,
  input: string,
): Promise<Run> {
  const file = fileURLToPath(new URL(`../../docs/recipes/${name}`, import.meta.url))
  // Nothing of the machine's own settings, such as a proxy, is for a service on this machine.
  const child = spawn(command, [file, ...options], { env: { PATH: process.env['PATH'], ...settings } })
  const out: Buffer[] = []
  const err: Buffer[] = []
  child.stdout.on('data', (chunk: Buffer) => out.push(chunk))
  child.stderr.on('data', (chunk: Buffer) => err.push(chunk))
  // A program that refuses its options does not read its input.
  child.stdin.on('error', () => undefined)
  child.stdin.end(input)
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code) => {
      resolve({ code, out: Buffer.concat(out).toString(), err: Buffer.concat(err).toString() })
    })
  })
}

/** A service that refuses batches in this order, and takes them from then on; `seen` has each body, with its type in front. */
async function startRefusing(refusals: readonly (readonly [status: number, code: string])[]) {
  const part = '--b\r\nContent-Type: application/http\r\n\r\nHTTP/1.1 201 Created\r\n\r\n{}\r\n'
  const taken = replyWith(200, `${part}--b--\r\n`, { 'Content-Type': 'multipart/mixed; boundary=b' })
  const upstream = await startUpstream((seen, response) => {
    const [status, code] = refusals[seen.index] ?? []
    if (status === undefined) return taken(seen, response)
    return replyWith(status, { error: { code } }, { 'Retry-After': '0' })(seen, response)
  })
  return {
    settings: { V2_URL: upstream.url, V2_KEY: 'k', V2_TOKEN: 't' },
    seen: () => upstream.seen.map(({ headers, body }) => `${headers['content-type'] ?? ''}\n${body}`),
  }
}

const settingsOf = ({ root }: Service): Settings => ({ V2_URL: root, V2_KEY: 'sandbox', V2_TOKEN: 'sandbox' })
const linesOf = (marks: readonly Mark[]): string => marks.map((mark) => `${JSON.stringify(mark)}\n`).join('')

describe.each(recipes)('docs/recipes/$name', (recipe) => {
  const missing = isMissing(recipe.needs)
  const title = (text: string): string =>
    missing ? `${text} (NOT RUN: ${recipe.needs} is not installed)` : text
  const test = it.skipIf(missing)

  test.each(['flat', 'nested'])(
    title('writes what is right, tells what is wrong, and exits 1: layout %s'),
    async (layout) => {
      const service = await startService({ layout })
      const lines = service.told.map(({ status, codes = [] }, index) =>
        [index + 1, status, ...codes].join(' '),
      )
      expect(await run(recipe, [], settingsOf(service), linesOf(service.register))).toEqual({
        code: 1,
        out: `${lines.join('\n')}\n`,
        err: '',
      })
      expect(await service.taken()).toEqual(marksOf(service.told))
    },
  )

  test(title('exits 0 when every record was written, and takes options before the environment'), async () => {
    const service = await startService()
    const marks = marksOf(service.told)
    const options = ['-u', service.root, '-k', 'sandbox', '-t', 'sandbox', '-']
    const elsewhere = { V2_URL: 'http://127.0.0.1:1', V2_KEY: 'other', V2_TOKEN: 'other' }
    const input = `\n${linesOf(marks).replaceAll('\n', '\r\n')}\n`
    expect(await run(recipe, options, elsewhere, input)).toEqual({
      code: 0,
      out: marks.map((_, index) => `${index + 1} 201\n`).join(''),
      err: '',
    })
    expect(await service.taken()).toEqual(marks)
  })

  test(title('exits 1 with the answer when the request is refused as a whole'), async () => {
    const service = await startService()
    const settings = { ...settingsOf(service), V2_TOKEN: 'nobody' }
    const { code, out, err } = await run(recipe, [], settings, linesOf(service.register))
    expect([code, out]).toEqual([1, ''])
    expect(err).toContain('refused as a whole: 401 {"statusCode":401')
    expect(await service.taken()).toEqual([])
  })

  test(title('repeats the same bytes with the same boundary where nothing is written twice'), async () => {
    const { settings, seen } = await startRefusing([
      [503, 'ADP_OVERLOADED'],
      [504, 'ADP_OUTCOME_UNKNOWN'],
      [504, 'ADP_JOURNAL_LOST'],
    ])
    expect(await run(recipe, [], settings, '{}\n')).toMatchObject({ code: 0, out: '1 201\n' })
    expect(seen()).toHaveLength(4)
    expect(new Set(seen()).size).toBe(1)
    // Another run is another batch.
    await run(recipe, [], settings, '{}\n')
    expect(new Set(seen()).size).toBe(2)
  })

  test.each([
    ['V2 may write it again', 504, 'ADP_V2_OUTCOME_UNKNOWN', 1],
    ['the request is refused', 400, 'ADP_TRUNCATED', 1],
    ['it was repeated three times', 503, 'ADP_UPSTREAM_UNAVAILABLE', 4],
  ])(title('does not repeat, and shows the answer, where %s'), async (_name, status, code, count) => {
    const { settings, seen } = await startRefusing(Array.from({ length: 9 }, () => [status, code] as const))
    const result = await run(recipe, [], settings, '{}\n')
    expect([result.code, result.out, seen().length]).toEqual([1, '', count])
    expect(result.err).toContain(`refused as a whole: ${status} {"error":{"code":"${code}"`)
  })

  test.each([
    ['nobody listens', undefined],
    ['the reply breaks off', 'Content-Length: 500\r\n\r\n--batchresponse_1\r\n'],
  ])(title('exits 1 when there is no whole answer, without the token: %s'), async (_name, reply) => {
    const url =
      reply === undefined
        ? 'http://127.0.0.1:1'
        : (
            await startRawUpstream(
              replyWithBytes(
                `HTTP/1.1 200 OK\r\nContent-Type: multipart/mixed; boundary=x\r\n${reply}`,
                true,
              ),
            )
          ).url
    const settings = { V2_URL: url, V2_KEY: 'k', V2_TOKEN: 'secret-token' }
    const { code, out, err } = await run(recipe, [], settings, '{}\n')
    expect([code, out]).toEqual([1, ''])
    expect(err).toMatch(/no answer.*[lL]ook up what was written before you post again\./)
    expect(err).not.toContain('secret-token')
  })

  test.each([
    ['no address', [], { V2_KEY: 'k', V2_TOKEN: 't' }, '{}\n'],
    ['no key', [], { V2_URL: 'http://127.0.0.1:1', V2_TOKEN: 't' }, '{}\n'],
    ['no token', [], { V2_URL: 'http://127.0.0.1:1', V2_KEY: 'k' }, '{}\n'],
    ['no records', [], { V2_URL: 'http://127.0.0.1:1', V2_KEY: 'k', V2_TOKEN: 't' }, '\n \n'],
    ['no such file', ['/no/such/file'], { V2_URL: 'http://127.0.0.1:1', V2_KEY: 'k', V2_TOKEN: 't' }, ''],
    ['no such option', ['-x'], {}, ''],
  ])(title('exits 2 with its usage: %s'), async (_name, options, settings, input) => {
    const { code, out, err } = await run(recipe, options, settings, input)
    expect([code, out]).toEqual([2, ''])
    expect(err.toLowerCase()).toContain('usage: post-register')
  })
})
