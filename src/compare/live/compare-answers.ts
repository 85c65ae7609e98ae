import { waitFor } from '../../clock.ts'
import type { Side } from '../../rollout/stage.ts'
import { readNextLink } from '../../translate/index.ts'
import { describeMark } from '../diff/compare-mark.ts'
import { comparePair } from '../diff/compare-pair.ts'
import { Findings, type OwnRules, verdictOnly } from '../diff/findings.ts'
import { isMembers } from '../diff/values.ts'
import { isEqual } from '../verdict.ts'
import { headersOf, splitTarget } from '../wire-exchange.ts'
import type { AskedRead, SideAnswer } from './ask-sides.ts'
import type { CheckOptions } from './check-marks.ts'
import {
  type CheckResult,
  type ComparedRecord,
  type OfferedRead,
  plainBody,
  type SkipReason,
} from './exchange.ts'
import { marksOf, noFacts, readBody, unwrapped } from './marks.ts'

type ReadAnswer = Extract<SideAnswer, { kind: 'answered' }>

const CALLS_MS = 60_000
/** The pause after a difference before V2 and V3 are read again. The data may have changed between the two first answers. */
const AGAIN_MS = 2_000

/** Runs the check `answers`: repeats a read on the side that did not serve it and compares the two answers. */
export async function checkAnswers(
  offered: OfferedRead,
  isContinued: (query: string) => boolean,
  { ask, rules, clock, stopped }: CheckOptions,
): Promise<CheckResult> {
  const { client, served } = offered
  const read = toAsked(offered, isContinued)
  if (typeof read === 'string') return { kind: 'skipped', reason: read }
  const deadlineMs = clock.nowMs() + CALLS_MS
  const asked = (side: Side): Promise<SideAnswer> =>
    ask[side]({ client, ...read }, deadlineMs - clock.nowMs())
  const own = await ownAnswer(offered, () => asked(served))
  if (typeof own === 'string') return { kind: 'skipped', reason: own }
  const other = await asked(served === 'v2' ? 'v3' : 'v2')
  const [v2, v3] = served === 'v2' ? [own, other] : [other, own]
  const first = compareBoth(offered, v2, v3, rules)
  if (first.kind === 'skipped' || v2.kind !== 'answered' || v3.kind !== 'answered') return first
  if (first.records.every(isEqual)) return first
  await waitFor(Math.min(AGAIN_MS, client.partner.compare.settleMs), clock, stopped)
  return compareBoth(offered, await asked('v2'), await asked('v3'), rules)
}

function compareBoth(
  offered: OfferedRead,
  v2: SideAnswer,
  v3: SideAnswer,
  rules: OwnRules | undefined,
): CheckResult {
  for (const answer of [v2, v3])
    if (answer.kind === 'unsent') return { kind: 'skipped', reason: answer.reason }
  if (v2.kind !== 'answered' || v3.kind !== 'answered')
    return { kind: 'compared', records: [{ ...noFacts, ...verdictOnly('unknown') }] }
  return compareAnswers(offered, v2, v3, { rules })
}

/**
 * Returns the answer of the side that served the read. This is the reply that the client received, or the answer to a repeated read if the
 * reply was streamed. Returns the reason for skipping if the answer cannot be compared.
 */
async function ownAnswer(
  { reply }: OfferedRead,
  again: () => Promise<SideAnswer>,
): Promise<SideAnswer | SkipReason> {
  if (reply === undefined) return again()
  const { status } = reply
  if (status >= 500 || [401, 403, 429].includes(status)) return 'refused'
  const body = await plainBody(reply)
  return Buffer.isBuffer(body) ? { kind: 'answered', status, text: body.toString('utf8') } : body
}

type AnsweredRead = Pick<OfferedRead, 'kind' | 'target'>

/**
 * Returns the read that repeats the read of a client, or the reason why the answers of V2 and V3 cannot be compared. Reads of counts and of
 * single members are skipped, since reads of whole records cover the same data. `isContinued` returns true for the query of a next link
 * that the adapter created.
 */
export function toAsked(
  { kind, target, request }: AnsweredRead & Pick<OfferedRead, 'request'>,
  isContinued: (query: string) => boolean = () => false,
): Omit<AskedRead, 'client'> | SkipReason {
  const [path, query] = splitTarget(target)
  const { accept = '', prefer = '' } = headersOf(request)
  if (kind === 'readKey' ? !/\([^/]*\)\/?$/.test(path) : /\$count\/?$/i.test(path)) return 'form'
  if (isContinued(query)) return 'nextLink'
  const options = optionsOf(query)
  if (kind === 'readFilter') {
    if (new URLSearchParams(query).has('$skiptoken')) return 'nextLink'
    const isCut = options.has('top') || options.has('skip')
    if (isCut && !options.has('orderby')) return 'unordered'
  }
  if (!hasKey(kind, options.get('select'))) return 'noKey'
  return { kind: askedKinds[kind], path, query, accept, prefer }
}

/** Returns false if `$select` omits the members that identify a record, because the rows of V2 and V3 could then not be aligned. */
function hasKey(kind: AnsweredRead['kind'], select: string | undefined): boolean {
  const names = select?.split(',').map((name) => name.trim()) ?? ['*']
  const has = (...members: readonly string[]): boolean => members.every((name) => names.includes(name))
  return has('*') || has('ExternalID') || (kind !== 'registrations' && has('Learner', 'AttendableEvent'))
}

const askedKinds = { readFilter: 'filter', readKey: 'key', registrations: 'registrations' } as const

interface AnswersOptions {
  readonly rules?: OwnRules | undefined
  /** Returns true if a mark changed between the answers of V2 and V3, so that the verdict is `unknown`. Default: no mark changed. */
  readonly isChanged?: (v2: unknown, v3: unknown) => boolean
}

/** Compares the answer of V2 with the answer of V3 through the adapter. Rows are aligned by key. */
export function compareAnswers(
  { kind, target }: AnsweredRead,
  v2: ReadAnswer,
  v3: ReadAnswer,
  { isChanged, rules }: AnswersOptions,
): CheckResult {
  if (v2.status >= 300 || v3.status >= 300)
    return { kind: 'compared', records: [compareStatus(v2.status, v3.status, rules)] }
  const [own, other] = [unwrapped(readBody(v2.text)), unwrapped(readBody(v3.text))]
  const [ownRows, otherRows] = [marksOf(own), marksOf(other)]
  if (ownRows === undefined || otherRows === undefined) return { kind: 'skipped', reason: 'form' }
  if (hasNext(own) || hasNext(other)) return { kind: 'skipped', reason: 'paged' }
  const diffs = comparePair({
    kind: kind === 'registrations' ? 'registrations' : 'marks',
    v2: ownRows,
    v3: otherRows,
    order: optionsOf(splitTarget(target)[1]).has('orderby') ? 'asked' : 'unasked',
    rules,
  })
  // Two empty answers agree, so they count as one record that is the same.
  if (diffs.length === 0) return { kind: 'compared', records: [{ ...noFacts, ...verdictOnly('same') }] }
  const records = diffs.map((diff): ComparedRecord => {
    const { verdict } = diff.comparison
    const mayChange = verdict === 'differs' || verdict === 'onlyV3'
    const comparison =
      mayChange && isChanged?.(diff.v2, diff.v3) === true ? verdictOnly('unknown') : diff.comparison
    return { ...describeMark(diff), ...comparison }
  })
  return { kind: 'compared', records }
}

function compareStatus(v2: number, v3: number, rules: OwnRules | undefined): ComparedRecord {
  const findings = new Findings(rules)
  if (v2 !== v3) findings.differ('reply/status', 'value', [`status:${v2}`, `status:${v3}`])
  return { ...noFacts, ...findings.result() }
}

/** Returns the options of a raw query by lower-case name without `$`. Reads also accept options without `$` (service-facts 13). */
function optionsOf(query: string): ReadonlyMap<string, string> {
  return new Map(
    [...new URLSearchParams(query)].map(([name, value]) => [name.replace(/^\$/, '').toLowerCase(), value]),
  )
}

const hasNext = (page: unknown): boolean => isMembers(page) && readNextLink(page).kind !== 'none'
