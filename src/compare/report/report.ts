import {
  doubtsOf,
  MIN_COMPARED_PERCENT,
  outcomeOf,
  type RunDocument,
  type RunDoubt,
  type RunOutcome,
  type StepAdvice,
  unlikeOf,
} from '../run-document.ts'
import type { DifferenceKind } from '../verdict.ts'
import { explain, type Explanation, gravities, type Gravity, gravityOf } from './explanations.ts'
import { formatCount, formatShare, roundCount } from './format.ts'

/** A class of differences. Records that one side lacks form a class too, and so do records that could not be compared. */
export interface ReportedClass {
  /** The path as in `FieldDifference`, or `(row)` for the record as a whole. */
  readonly path: string
  readonly kind: DifferenceKind | 'onlyV2' | 'onlyV3' | 'unknown'
  readonly v2Class: string
  readonly v3Class: string
  readonly count: number
  readonly gravity: Gravity
  readonly explanation: Explanation
}

export interface Report {
  /**
   * The document of the run. Counts are rounded to multiples of 5 unless `exact`. Texts are free of characters that hide or reorder text.
   */
  readonly run: RunDocument
  readonly exact: boolean
  readonly outcome: RunOutcome
  readonly doubts: readonly RunDoubt[]
  readonly title: string
  readonly headline: string
  /** The limits of the outcome: one sentence per doubt, and for a live run the advice and its missing conditions. */
  readonly limits: readonly string[]
  readonly classes: readonly ReportedClass[]
}

export interface ReportOptions {
  readonly exact: boolean
  readonly advice?: StepAdvice
}

const adviceLimits = ({ kind }: RunDocument, advice: StepAdvice): readonly string[] =>
  kind !== 'live' || advice === undefined || advice.verdict === 'ready'
    ? []
    : [`The advice on the next step is "${advice.verdict}".`, ...advice.missing]

export function createReport(document: RunDocument, { exact, advice }: ReportOptions): Report {
  const run = toPrintable(document, '', exact) as RunDocument
  const [outcome, doubts] = [outcomeOf(document, advice), doubtsOf(document)]
  const classes = classesOf(run)
  return {
    ...{ run, exact, outcome, doubts, title: titles[outcome] },
    headline: headlineOf(run, outcome) + omittedHistoriesOf(run),
    limits: [...doubts.map((doubt) => limitOf(run, doubt)), ...adviceLimits(document, advice)],
    classes,
  }
}

const notCounts: ReadonlySet<string> = new Set(['schema', 'upToMs'])

function toPrintable(value: unknown, name: string, exact: boolean): unknown {
  if (typeof value === 'string') return cleanText(value)
  if (typeof value === 'number') return exact || notCounts.has(name) ? value : roundCount(value)
  if (Array.isArray(value)) return value.map((one) => toPrintable(one, name, exact))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([member, one]) => [member, toPrintable(one, member, exact)]),
  )
}

const MAX_SHOWN = 300
/** Matches control characters, characters that hide text or change its direction, line separators, and unpaired surrogates. */
const unprintable =
  /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|\p{Surrogate}/gu

/** Makes text of a service safe for a report: one line, at most 300 characters, none of which hides or reorders other characters. */
function cleanText(text: string): string {
  const printable = text.replaceAll(/[\t\r\n]+/g, ' ').replaceAll(unprintable, '\ufffd')
  const characters = Array.from(printable)
  return characters.length <= MAX_SHOWN ? printable : `${characters.slice(0, MAX_SHOWN).join('')}…`
}

function classesOf({ differences, verdicts }: RunDocument): readonly ReportedClass[] {
  const row = { path: '(row)', v2Class: 'record', v3Class: 'record' }
  const rows: readonly Omit<ReportedClass, 'gravity' | 'explanation'>[] = [
    { ...row, kind: 'onlyV2', v3Class: 'missing', count: verdicts.onlyV2 },
    { ...row, kind: 'onlyV3', v2Class: 'missing', count: verdicts.onlyV3 },
    { ...row, kind: 'unknown', count: verdicts.unknown },
  ]
  return [...differences, ...rows.filter(({ count }) => count > 0)]
    .map((one) => ({ ...one, gravity: gravityOf(one), explanation: explain(one) }))
    .sort(
      (one, other) =>
        gravities.indexOf(one.gravity) - gravities.indexOf(other.gravity) || other.count - one.count,
    )
}

const titles = { ready: 'Ready', differs: 'Differs', inconclusive: 'Inconclusive' }

function headlineOf({ compared, verdicts }: RunDocument, outcome: RunOutcome): string {
  // The sum of rounded counts may exceed the rounded total.
  const unlike = Math.min(compared, unlikeOf(verdicts))
  if (outcome === 'ready' && unlike === 0) {
    const records =
      compared === 1 ? 'the one compared record is' : `all ${formatCount(compared)} compared records are`
    return `V3 through the adapter returns the same data as V2: ${records} the same, or equivalent by a named rule.`
  }
  if (outcome === 'inconclusive')
    return 'No difference was found so far, but this run cannot prove that V3 through the adapter returns the same data as V2.'
  const share = formatShare(unlike, compared)
  return `V3 through the adapter does not return the same data as V2 for ${formatCount(unlike)} of ${formatCount(compared)} compared records${share === undefined ? '' : ` (${share})`}${outcome === 'ready' ? '. That is under rollout.evidence.limit, so the next step is advised' : ''}.`
}

/**
 * Returns a sentence about the records whose histories the adapter omits and the run did not compare, or an empty text if there are none.
 */
function omittedHistoriesOf({ equivalences }: RunDocument): string {
  const records = equivalences.find(({ rule }) => rule === 'history-left-out')?.count ?? 0
  if (records === 0) return ''
  const are = records === 1 ? 'One record has a history' : `${formatCount(records)} records have histories`
  return ` ${are} in V2 that the adapter omits (reads.histories is false). AttendanceHistorys was not compared there.`
}

function limitOf({ offered, compared, verdicts, ownRules }: RunDocument, doubt: RunDoubt): string {
  switch (doubt) {
    case 'nothingCompared':
      return 'Nothing was compared.'
    case 'incomplete':
      return 'The run is not complete: it was stopped early, or some of the records could not be read.'
    case 'tooFewCompared':
      return `${formatCount(compared)} of ${formatCount(offered)} offered records were compared, which is less than ${MIN_COMPARED_PERCENT} %.`
    case 'unknown':
      return `${verdicts.unknown === 1 ? 'One record' : `${formatCount(verdicts.unknown)} records`} could not be compared.`
    case 'expiredRules': {
      const expired = ownRules.filter((rule) => rule.expired && rule.count > 0)
      return `${expired.length === 1 ? 'One rule of the partner has' : `${expired.length} rules of the partner have`} expired, and the fields count as differences again: ${expired.map(({ name }) => name).join(', ')}.`
    }
  }
}
