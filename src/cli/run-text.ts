import { doubtsOf, outcomeOf, type RunDocument, type RunDoubt } from '../compare/run-document.ts'
import { DAY_MS, formatDay, type RunResult } from '../compare/run/index.ts'
import { type Verdict, verdicts } from '../compare/verdict.ts'
import type { AdapterError } from '../errors.ts'
import { formatCounted, formatTable } from './text.ts'

/** Classes of differences that the table shows. */
const MAX_CLASSES = 10

const meanings: Readonly<Record<Verdict, string>> = {
  same: 'every field is the same text',
  equivalent: 'fields that mean the same by a rule',
  differs: 'a field differs',
  onlyV2: 'V3 does not have it',
  onlyV3: 'V2 does not have it',
  unknown: 'could not be compared',
}

/** The result of a run for people: verdicts, the largest classes of difference, the next step, where the file is. */
export function formatRun({ document, path }: Pick<RunResult, 'document' | 'path'>): string {
  const { compared, partner, from, to, complete } = document
  const who = partner === null ? '' : `, partner ${partner}`
  return [
    `${document.run}: ${from} to ${to}${who}${complete ? '' : ' (not complete)'}`,
    '',
    formatVerdicts(document),
    ...formatDifferences(document),
    ...formatEquivalences(document),
    ...formatNoise(document),
    '',
    nextStep(document),
    `The report on ${formatCounted(compared, 'record')} is in ${path}.`,
  ].join('\n')
}

function formatVerdicts({ verdicts: counts, compared }: RunDocument): string {
  const rows = verdicts.map((name) => {
    const count = counts[name]
    const share = compared === 0 ? '' : `${((count / compared) * 100).toFixed(2)} %`
    return [name, count.toLocaleString('en'), count === 0 ? '' : share, count === 0 ? '' : meanings[name]]
  })
  return formatTable([['verdict', 'records', 'share', ''], ...rows])
}

function formatDifferences({ differences }: RunDocument): readonly string[] {
  if (differences.length === 0) return []
  const shown = differences.slice(0, MAX_CLASSES)
  const more = differences.length - shown.length
  const rows = shown.map(({ path, kind, v2Class, v3Class, count }) => [
    path,
    kind,
    v2Class,
    v3Class,
    count.toLocaleString('en'),
  ])
  return [
    '',
    formatTable([['field', 'kind', 'V2', 'V3', 'records'], ...rows]),
    ...(more > 0 ? [`and ${more} more classes`] : []),
  ]
}

function formatEquivalences({ equivalences }: RunDocument): readonly string[] {
  if (equivalences.length === 0) return []
  const rows = equivalences
    .slice(0, MAX_CLASSES)
    .map(({ rule, path, count }) => [rule, path, count.toLocaleString('en')])
  return ['', formatTable([['equivalent by', 'field', 'records'], ...rows])]
}

function formatNoise({ noise, askedAgain }: RunDocument): readonly string[] {
  const again = askedAgain === 0 ? [] : [`${askedAgain.toLocaleString('en')} records were asked again.`]
  const own = noise.measured
    ? [
        noise.records === 0
          ? 'Two reads of V2 agree.'
          : `${noise.records.toLocaleString('en')} records differ between two reads of V2; these fields do not count.`,
      ]
    : []
  return again.length + own.length === 0 ? [] : ['', ...own, ...again]
}

function nextStep(document: RunDocument): string {
  switch (outcomeOf(document)) {
    case 'ready':
      return 'Nothing differs.'
    case 'differs':
      return `V3 differs. Begin with the largest class: markbridge compare report ${document.run} says what each may mean, and what to do.`
    case 'inconclusive':
      return doubts[doubtsOf(document)[0] ?? 'unknown']
  }
}

const doubts: Readonly<Record<RunDoubt, string>> = {
  nothingCompared: 'Inconclusive: no record was compared. Choose days of a term.',
  incomplete: 'Inconclusive: nothing differs in what was compared, and not all was. Go on with --resume.',
  tooFewCompared: 'Inconclusive: too few of the records were compared.',
  unknown: 'Inconclusive: records could not be compared.',
  expiredRules: 'Inconclusive: a rule of the partner has expired.',
}

/** Why a run is not complete, and how to go on, on one line. */
export function describeFailure({ kind, failures, document }: RunResult): string {
  const resume = `Go on with the same options and --resume ${document.run}.`
  if (kind === 'stopped') return `The run was stopped. ${resume}`
  const [first] = failures
  const isRest = kind !== 'refused' && failures.length > 1
  const more = isRest ? ` ${failures.length - 1} more windows could not be compared.` : ''
  const why = first === undefined ? '' : `${describe(first)}${more} `
  return `${kind === 'failing' ? 'The run ended early: window after window failed. ' : ''}${why}${resume}`
}

function describe({ window, side, cause }: RunResult['failures'][number]): string {
  const { fromMs, toMs } = window
  const days = toMs > fromMs ? ` (${formatDay(fromMs)} to ${formatDay(Math.max(fromMs, toMs - DAY_MS))})` : ''
  return describeCause(side, cause, days)
}

/** Why a side could not be read. The text of a service is not shown: it may name what was asked for. */
export function describeCause(side: 'V2' | 'V3', cause: AdapterError, days = ''): string {
  const variable = `MARKBRIDGE_${side === 'V3' ? 'V3_' : ''}`
  switch (cause.code) {
    case 'ADP_TOKEN':
    case 'ADP_SUBSCRIPTION_KEY':
      return `${side} denies the credentials (401). Check ${variable}SUBSCRIPTION_KEY and ${variable}TOKEN, or the partner's own.`
    case 'ADP_FORBIDDEN':
      return `${side} does not let these credentials read this (403). The school may have withdrawn its consent, or the application lacks the permission.`
    case 'ADP_NOT_FOUND':
      return `${side} has no such path (404). Check the base address of ${side}.`
    case 'ADP_UPSTREAM_REFUSED':
      return `${side} refuses the query${days}: ${cause.details.map(({ code }) => codeOf(code)).join(', ')}.`
    case 'ADP_UPSTREAM_PROTOCOL':
    case 'ADP_QUERY':
      return `${side}${days}: ${cause.message}`
    default:
      return `${side} was not available${days}.`
  }
}

/** A code of an error as services write it; anything else may be a value. */
function codeOf(code: string): string {
  return /^[A-Z][A-Za-z_]{0,40}\d{0,3}$/.test(code) ? code : 'without a known code'
}
