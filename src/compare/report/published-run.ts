import { doubtsOf, outcomeOf, type RunDocument, type RunDoubt, type RunOutcome } from '../run-document.ts'
import type { DifferenceKind } from '../verdict.ts'

/** A run as all reports print it: counts are multiples of 5 unless `exact`, texts have no characters that hide or reorder others. */
export interface PublishedRun extends RunDocument {
  /** Marks the document as a report, which no report is made from. */
  readonly report: 'markbridge-compare'
  readonly exact: boolean
  readonly outcome: RunOutcome
  readonly doubts: readonly RunDoubt[]
}

/**
 * Makes of the document of a run what a report may print: unless `exact`, each count is rounded to a multiple of 5, and only 0 is printed
 * as 0, since a small count may point to a single child. Every form of report prints this and nothing else.
 */
export function publishRun(document: RunDocument, { exact }: { readonly exact: boolean }): PublishedRun {
  return {
    report: 'markbridge-compare',
    exact,
    outcome: outcomeOf(document),
    doubts: doubtsOf(document),
    ...(publish(document, '', exact) as RunDocument),
  }
}

/** Numbers that count nothing. */
const notCounts: ReadonlySet<string> = new Set(['schema', 'upToMs'])

function publish(value: unknown, name: string, exact: boolean): unknown {
  if (typeof value === 'string') return cleanText(value)
  if (typeof value === 'number') return exact || notCounts.has(name) ? value : roundCount(value)
  if (Array.isArray(value)) return value.map((one) => publish(one, name, exact))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([member, one]) => [member, publish(one, member, exact)]),
  )
}

const roundCount = (count: number): number => (count === 0 ? 0 : Math.max(5, Math.round(count / 5) * 5))

const MAX_SHOWN = 300
/** Control characters, marks that hide or turn the direction of text, separators of lines, and halves of surrogate pairs. */
const unprintable =
  /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|\p{Surrogate}/gu

/** A foreign text as it may stand in a report: on one line, at most 300 characters, without those that hide or reorder others. */
function cleanText(text: string): string {
  const printable = text.replaceAll(/[\t\r\n]+/g, ' ').replaceAll(unprintable, '\ufffd')
  const characters = Array.from(printable)
  return characters.length <= MAX_SHOWN ? printable : `${characters.slice(0, MAX_SHOWN).join('')}…`
}

/** A class of differences, or of records that one side lacks, or that could not be compared. */
export interface ReportedClass {
  /** As in `FieldDifference`; `(row)` for the record as a whole. */
  readonly path: string
  readonly kind: DifferenceKind | 'onlyV2' | 'onlyV3' | 'unknown'
  readonly v2Class: string
  readonly v3Class: string
  readonly count: number
}

/** Everything of a run that asks for an explanation, the largest first. */
export function reportedClasses({ differences, verdicts }: PublishedRun): readonly ReportedClass[] {
  const rows: readonly ReportedClass[] = [
    { path: '(row)', kind: 'onlyV2', v2Class: 'record', v3Class: 'missing', count: verdicts.onlyV2 },
    { path: '(row)', kind: 'onlyV3', v2Class: 'missing', v3Class: 'record', count: verdicts.onlyV3 },
    { path: '(row)', kind: 'unknown', v2Class: 'record', v3Class: 'record', count: verdicts.unknown },
  ]
  return [...differences, ...rows.filter(({ count }) => count > 0)].sort(
    (one, other) => other.count - one.count,
  )
}
