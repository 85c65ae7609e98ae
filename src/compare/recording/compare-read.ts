import { plainly } from '../diff/index.ts'
import { askedKind, compareAnswers, unfitRead } from '../live/index.ts'
import { readSidePage } from '../run/index.ts'
import type { Tally } from '../tally.ts'
import type { AskOptions } from './compare-marks.ts'
import { type Exchange, headerOf, type RecordedKind } from './exchange.ts'
import { isLater } from './is-later.ts'

type ReadKind = Exclude<RecordedKind, 'batch' | 'record'>

/** Sets the recorded answer to a read against the one that V3 gives now. A mark that V3 shows with a later time was changed since: unknown. */
export async function compareRead(
  exchange: Exchange,
  kind: ReadKind,
  { v3, rules, nowMs, signal }: AskOptions,
  tally: Tally,
): Promise<void> {
  const { target, reply, receivedMs, durationMs } = exchange
  const [path, query] = splitTarget(target)
  const asked = askedKind({ kind, path })
  const isJson = /json/i.test(headerOf(reply.headers, 'content-type') ?? '')
  const isAnswer = reply.status < 300 ? isJson : isRefusal(reply.status)
  const text = reply.body.toString('utf8')
  const records = Math.max(1, countRows(text))
  if (asked === undefined || !isAnswer || unfitRead({ kind, query }, false) !== undefined) {
    tally.skip(records)
    return
  }
  const answer = await v3({ kind: asked, path, query }, signal)
  if (signal.aborted) return
  const day = new Date(receivedMs).toISOString().slice(0, 10)
  if (answer.kind !== 'answered') {
    for (let count = 0; count < records; count += 1) tally.add(plainly('unknown'), { kind, day })
    return
  }
  const repliedOn = { RecordedOn: new Date(receivedMs + durationMs).toISOString() }
  const result = compareAnswers({ kind, query }, { kind: 'answered', status: reply.status, text }, answer, {
    ...(rules === undefined ? {} : { rules }),
    isChanged: (v2, seen) => isLater(seen, v2 ?? repliedOn, nowMs()),
  })
  if (result.kind === 'skipped') tally.skip(records)
  else
    for (const record of result.records)
      tally.add(record, { kind, day: record.day ?? day, codeClass: record.codeClass })
}

/** A refusal that is one of the request, not of the credentials or for a limit. */
const isRefusal = (status: number): boolean =>
  status >= 400 && status < 500 && ![401, 403, 429].includes(status)

function splitTarget(target: string): readonly [path: string, query: string] {
  const at = target.indexOf('?')
  return at === -1 ? [target, ''] : [target.slice(0, at), target.slice(at + 1)]
}

/** Records of an answer that is a list; 0: it is none. */
function countRows(text: string): number {
  try {
    return readSidePage(JSON.parse(text)).rows.length
  } catch {
    return 0
  }
}
