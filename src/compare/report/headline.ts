import { LEAST_COMPARED_PERCENT, type RunDoubt } from '../run-document.ts'
import { explain } from './explanations.ts'
import { formatCount, formatShare } from './format.ts'
import { reportedClasses, type PublishedRun } from './published-run.ts'

/** What a report says first. */
interface Headline {
  readonly title: string
  /** One sentence for a decision. */
  readonly sentence: string
  /** What limits it, one sentence each. */
  readonly doubts: readonly string[]
}

/** Words the outcome of a run. */
export function headlineOf(run: PublishedRun): Headline {
  return {
    title: titles[run.outcome],
    sentence: sentenceOf(run),
    doubts: run.doubts.map((doubt) => doubtIn(run, doubt)),
  }
}

const titles = { ready: 'Ready', differs: 'Differs', inconclusive: 'Inconclusive' }

function sentenceOf(run: PublishedRun): string {
  const { compared, verdicts, outcome } = run
  if (outcome === 'ready')
    return `V3 through the adapter gives what V2 gives: ${
      compared === 1 ? 'the one compared record is' : `all ${formatCount(compared)} compared records are`
    } the same, or equivalent by a named rule.`
  if (outcome === 'inconclusive')
    return 'This run cannot say whether V3 through the adapter gives what V2 gives; no difference was found so far.'
  // Rounded counts may add up to more.
  const unlike = Math.min(compared, verdicts.differs + verdicts.onlyV2 + verdicts.onlyV3)
  const share = formatShare(unlike, compared)
  const largest = reportedClasses(run).find(({ kind }) => kind !== 'unknown')
  return `V3 through the adapter does not give what V2 gives for ${formatCount(unlike)} of ${formatCount(compared)} compared records${
    share === undefined ? '' : ` (${share})`
  }${largest === undefined ? '' : `, most often: ${lower(explain(largest).title)} (${formatCount(largest.count)})`}.`
}

const lower = (text: string): string =>
  /^[A-Z][a-z]/.test(text) ? text.charAt(0).toLowerCase() + text.slice(1) : text

function doubtIn({ offered, compared, verdicts, ownRules }: PublishedRun, doubt: RunDoubt): string {
  switch (doubt) {
    case 'nothingCompared':
      return 'Nothing was compared.'
    case 'incomplete':
      return 'The run was stopped before its end: it covers a part of the records.'
    case 'tooFewCompared':
      return `${formatCount(compared)} of ${formatCount(offered)} offered records were compared, less than ${LEAST_COMPARED_PERCENT} %.`
    case 'unknown':
      return `${formatCount(verdicts.unknown)} records could not be compared.`
    case 'expiredRules': {
      const expired = ownRules.filter((rule) => rule.expired && rule.count > 0)
      return `${expired.length === 1 ? 'One own rule has' : `${expired.length} own rules have`} expired, and the fields count as differences again: ${expired.map(({ name }) => name).join(', ')}.`
    }
  }
}
