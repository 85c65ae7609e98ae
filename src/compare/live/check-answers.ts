import type { Clock } from '../../clock.ts'
import type { Pair } from '../diff/index.ts'
import type { Side } from '../../rollout/index.ts'
import type { AskedRead, AskSide, SideAnswer } from './ask-sides.ts'
import type { Check } from './checks.ts'
import { type AnswersResult, compareAnswers, hasDifferences, unfitRead } from './compare-answers.ts'
import { plainly } from './findings.ts'
import { noFacts } from './flat-mark.ts'
import { waitFor } from '../../clock/wait-for.ts'
import type { OfferedRead } from './offered-exchange.ts'
import { plainBody } from './plain-body.ts'
import type { SkipReason } from './skip-reason.ts'

export interface AnswerCheckOptions {
  readonly ask: Readonly<Record<Side, AskSide>>
  readonly rules: Pick<Pair, 'rules'>
  readonly clock: Clock
  readonly stopped: AbortSignal
  /** True for the query of a next link of the adapter. */
  readonly isContinued: (query: string) => boolean
}

/** Time for all calls of one check. */
const CALLS_MS = 60_000
/** After a difference both sides are asked again: something may have changed between the two answers. */
const AGAIN_MS = 2_000

/** `answers`: asks the side that has not served a read for the same, and sets answer against answer. */
export async function checkAnswers(
  offered: OfferedRead,
  check: Check,
  { ask, rules, clock, stopped, isContinued }: AnswerCheckOptions,
): Promise<void> {
  const kind = askedKind(offered)
  const { client, path, query, accept, prefer, served } = offered
  const unfit = kind === undefined ? 'form' : unfitRead(offered, isContinued(query))
  if (kind === undefined || unfit !== undefined) {
    check.skipped(unfit ?? 'form')
    return
  }
  const deadlineMs = clock.nowMs() + CALLS_MS
  const read: AskedRead = { client, kind, path, query, accept, prefer }
  const asked = (side: Side): Promise<SideAnswer> => ask[side](read, deadlineMs - clock.nowMs())
  const own = await ownAnswer(offered, () => asked(served))
  if (typeof own === 'string') {
    check.skipped(own)
    return
  }
  const other = await asked(served === 'v2' ? 'v3' : 'v2')
  const first = compareBoth(offered, served === 'v2' ? [own, other] : [other, own], rules)
  if (first.kind === 'skipped' || !hasDifferences(first) || !isAnswered(own, other)) {
    end(check, first)
    return
  }
  await waitFor(Math.min(AGAIN_MS, client.partner.compare.settleMs), clock, stopped)
  const [v2, v3] = [await asked('v2'), await asked('v3')]
  end(check, compareBoth(offered, [v2, v3], rules))
}

function end(check: Check, result: AnswersResult): void {
  if (result.kind === 'skipped') check.skipped(result.reason)
  else check.compared(result.records)
}

function compareBoth(
  offered: OfferedRead,
  [v2, v3]: readonly [SideAnswer, SideAnswer],
  rules: Pick<Pair, 'rules'>,
): AnswersResult {
  for (const answer of [v2, v3])
    if (answer.kind === 'unsent') return { kind: 'skipped', reason: answer.reason }
  if (v2.kind !== 'answered' || v3.kind !== 'answered')
    return { kind: 'compared', records: [{ ...plainly('unknown'), ...noFacts }] }
  return compareAnswers(offered, v2, v3, rules)
}

const isAnswered = (...answers: readonly SideAnswer[]): boolean =>
  answers.every(({ kind }) => kind === 'answered')

/** The reply that the client got, or the same asked for once more; why neither can be read. */
async function ownAnswer(
  { reply }: OfferedRead,
  again: () => Promise<SideAnswer>,
): Promise<SideAnswer | SkipReason> {
  if (reply === undefined) return again()
  if (reply.status >= 500 || [401, 403, 429].includes(reply.status)) return 'refused'
  const body = await plainBody(reply)
  return Buffer.isBuffer(body)
    ? { kind: 'answered', status: reply.status, text: body.toString('utf8') }
    : body
}

/** Undefined: a count, or a field of a mark, which say nothing that a record does not. */
export function askedKind({ kind, path }: Pick<OfferedRead, 'kind' | 'path'>): AskedRead['kind'] | undefined {
  if (kind === 'registrations') return 'registrations'
  if (kind === 'readKey') return /\([^/]*\)\/?$/.test(path) ? 'key' : undefined
  return /\$count\/?$/i.test(path) ? undefined : 'filter'
}
