import type { Random } from '../../../src/sandbox/random.ts'
import { oddValue } from './odd-json.ts'
import type { Said } from './odd-reply.ts'

/**
 * The answer of a service to one record of a batch. `ids` lists the ids that the answer carries: usually one, but possibly none or several.
 */
interface Part extends Said {
  readonly ids: readonly string[]
}

/**
 * Combines the answers to the records of a `$batch`. Answers may be reordered, missing or repeated, may have wrong ids, no id or two ids,
 * and there may be too many of them. No answer takes the place of another record's answer.
 */
function arrange(answers: readonly Said[], random: Random): Part[] {
  const parts = answers.map((said, index): Part => ({ ...said, ids: [String(index + 1)] }))
  if (random.chance(0.5)) return parts
  const at = random.below(parts.length)
  const own = parts[at]
  if (own === undefined) return parts
  const change: () => Part[] = random.pick([
    () => parts.toReversed(),
    () => parts.toSpliced(at, 1),
    () => parts.toSpliced(at, 0, own),
    () => parts.toSpliced(at, 1, { ...own, ids: ['99'] }),
    () => parts.toSpliced(at, 1, { ...own, ids: [] }),
    () => parts.toSpliced(at, 1, { ...own, ids: [...own.ids, '98'] }),
    () => parts.toSpliced(at, 1, { ...own, ids: [...own.ids, ...own.ids] }),
    () => parts.toSpliced(at, 1, { ...own, ids: ['1'.repeat(3_000)] }),
    () => [...parts, { ...own, ids: ['7'.repeat(20)] }],
    () => parts.map((part) => ({ ...part, ids: [] })),
    () => [],
    () => Array.from({ length: own.body.length < 2_000 ? 400 : 1 }, () => own),
  ])
  return change()
}

export function oddMultipart(answers: readonly Said[], random: Random): Said {
  const boundary = random.pick(['b', 'batchresponse_1', 'x'.repeat(70), "b'()+_,-./:=?"])
  const lineEnd = random.chance(0.1) ? '\n' : '\r\n'
  const waits = (): string =>
    random.chance(0.2) ? `Retry-After: 1${lineEnd}`.repeat(1 + random.below(3)) : ''
  const parts = arrange(answers, random).map(({ ids, status, contentType, body }) => {
    const id = ids.map((own) => `Content-ID: ${own}${lineEnd}`).join('')
    const start = random.chance(0.97)
      ? `HTTP/1.1 ${status} Told`
      : random.pick(['HTTP/1.1', 'HTTP/3 201', '201', ''])
    const content = `${start}${lineEnd}${random.chance(0.1) ? id : ''}${waits()}Content-Type: ${contentType}${lineEnd}${lineEnd}${body}`
    return `--${boundary}${lineEnd}Content-Type: application/http${lineEnd}${id}${waits()}${lineEnd}${content}${lineEnd}`
  })
  const close = random.chance(0.95) ? `--${boundary}--${lineEnd}` : ''
  const preamble = random.chance(0.05) ? `--b${lineEnd}`.repeat(2_000) : ''
  const type = random.chance(0.93)
    ? `multipart/mixed; boundary="${boundary}"`
    : random.pick([
        'multipart/mixed',
        'multipart/mixed; boundary=',
        'multipart/mixed; boundary=y',
        'text/html',
        'application/json',
      ])
  const body = random.chance(0.1) ? inChangeset(parts.join(''), boundary, lineEnd) : parts.join('')
  return { status: 200, contentType: type, body: `${preamble}${body}${close}` }
}

const inChangeset = (parts: string, boundary: string, lineEnd: string): string =>
  `--${boundary}${lineEnd}Content-Type: multipart/mixed; boundary=inner${lineEnd}${lineEnd}${parts.replaceAll(`--${boundary}`, '--inner')}--inner--${lineEnd}`

export function oddJsonBatch(answers: readonly Said[], random: Random): Said {
  const responses = arrange(answers, random).map(({ ids, status, contentType, body }) => {
    const id = ids
      .map((own) => `"id":${random.chance(0.97) ? JSON.stringify(own) : own.slice(0, 15)},`)
      .join('')
    const code = random.chance(0.97)
      ? String(status)
      : random.pick([`"${status}"`, 'null', '-1', '1e3', String(status) + '.5'])
    const wait = random.chance(0.2)
      ? `,"Retry-After":${random.pick(['"1"', '1', '["1","1"]', 'null', '{}'])}`
      : ''
    const headers = random.chance(0.95)
      ? `{"content-type":${JSON.stringify(contentType)}${wait}}`
      : oddValue(random)
    const own = random.chance(0.85) && isJson(body) ? body : JSON.stringify(body)
    return `{${id}"status":${code},"headers":${headers},"body":${random.chance(0.96) ? own : oddValue(random)}}`
  })
  const list = random.chance(0.96) ? `[${responses.join()}]` : oddValue(random)
  return { status: 200, contentType: 'application/json', body: `{"responses":${list}}` }
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}
