import { comparePair, describeMark, type Pair, type RecordDiff } from '../diff/index.ts'
import type { ComparedRecord } from '../compared-exchange.ts'
import type { SideAnswer } from './ask-sides.ts'
import { Findings, plainly } from './findings.ts'
import { type FlatMark, isObject, marksOf, noFacts } from './flat-mark.ts'
import type { OfferedRead } from './offered-exchange.ts'
import { readBody } from './reply-bodies.ts'
import type { SkipReason } from './skip-reason.ts'

/** An answer to a read, as its client would get it. */
export type ReadAnswer = Extract<SideAnswer, { kind: 'answered' }>

export type AnswersResult =
  | { readonly kind: 'skipped'; readonly reason: SkipReason }
  | { readonly kind: 'compared'; readonly records: readonly ComparedRecord[] }

type AnsweredRead = Pick<OfferedRead, 'kind' | 'query'>

/** Why the answers to a read cannot be compared; undefined: they can. `isContinued`: the query is that of a next link. */
export function unfitRead({ kind, query }: AnsweredRead, isContinued: boolean): SkipReason | undefined {
  if (isContinued) return 'nextLink'
  if (kind !== 'readFilter') return undefined
  const names = optionsOf(query)
  if (names.has('$skiptoken')) return 'nextLink'
  const isCut = names.has('$top') || names.has('$skip')
  return isCut && !names.has('$orderby') ? 'unordered' : undefined
}

export interface AnswersOptions extends Pick<Pair, 'rules'> {
  /** True for a mark that was changed between the two answers: it is unknown. Default: none was. */
  readonly isChanged?: (v2: unknown, v3: unknown) => boolean
}

/** Sets V2's answer against V3's through the adapter, rows aligned by key. */
export function compareAnswers(
  read: AnsweredRead,
  v2: ReadAnswer,
  v3: ReadAnswer,
  { isChanged, ...rules }: AnswersOptions,
): AnswersResult {
  if (v2.status >= 300 || v3.status >= 300)
    return { kind: 'compared', records: [compareStatus(v2, v3, rules)] }
  const [own, other] = [readBody(v2.text), readBody(v3.text)]
  const [ownRows, otherRows] = [rowsOf(own), rowsOf(other)]
  if (ownRows === undefined || otherRows === undefined) return { kind: 'skipped', reason: 'form' }
  if (hasNext(own) || hasNext(other)) return { kind: 'skipped', reason: 'paged' }
  const order = optionsOf(read.query).has('$orderby') ? 'asked' : 'unasked'
  const kind = read.kind === 'registrations' ? 'registrations' : 'marks'
  const diffs = comparePair({ kind, v2: ownRows, v3: otherRows, order, ...rules })
  const records = diffs.map((diff) =>
    toRecord(isChanged === undefined ? diff : withoutChanged(diff, isChanged)),
  )
  // That both have none is a result too.
  if (records.length === 0) return { kind: 'compared', records: [{ ...plainly('same'), ...noFacts }] }
  return { kind: 'compared', records }
}

/** True where reading both sides once more may find fewer differences: a record may have changed between the two answers. */
export function hasDifferences({ records }: Extract<AnswersResult, { kind: 'compared' }>): boolean {
  return records.some(({ verdict }) => verdict !== 'same' && verdict !== 'equivalent')
}

function withoutChanged(diff: RecordDiff, isChanged: NonNullable<AnswersOptions['isChanged']>): RecordDiff {
  const { verdict } = diff.comparison
  const isFound = verdict === 'differs' || verdict === 'onlyV3'
  return isFound && isChanged(diff.v2, diff.v3) ? { ...diff, comparison: plainly('unknown') } : diff
}

function toRecord(diff: RecordDiff): ComparedRecord {
  const { learner, day, code, codeClass, traits } = describeMark(diff)
  return { ...diff.comparison, learner, day, code, codeClass, traits, errorCodes: [] }
}

function compareStatus(v2: ReadAnswer, v3: ReadAnswer, { rules }: Pick<Pair, 'rules'>): ComparedRecord {
  const findings = new Findings(rules)
  if (v2.status !== v3.status)
    findings.differ('reply/status', 'value', `status:${v2.status}`, `status:${v3.status}`)
  return { ...findings.comparison(), ...noFacts }
}

/** Names of the options of a raw query, in lower case. */
function optionsOf(query: string): ReadonlySet<string> {
  return new Set([...new URLSearchParams(query).keys()].map((name) => name.toLowerCase()))
}

function rowsOf(json: unknown): readonly FlatMark[] | undefined {
  return marksOf(json)
}

function hasNext(json: unknown): boolean {
  const inner = isObject(json) && isObject(json['d']) ? json['d'] : json
  return isObject(inner) && (inner['@odata.nextLink'] !== undefined || inner['__next'] !== undefined)
}
