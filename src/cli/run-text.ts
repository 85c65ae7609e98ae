import { formatCount } from '../compare/report/format.ts'
import { createReport } from '../compare/report/report.ts'
import type { RunDocument } from '../compare/run-document.ts'
import type { RunResult } from '../compare/run/run-comparison.ts'
import { DAY_MS, formatDay } from '../compare/run/windows.ts'
import { verdicts, verdictTexts } from '../compare/verdict.ts'
import type { AdapterError } from '../errors.ts'
import { formatCounted, formatTable } from './text.ts'

const MAX_CLASSES = 10

export function formatRun({ document, path }: Pick<RunResult, 'document' | 'path'>): string {
  const { run, compared, partner, from, to, complete, differences, equivalences } = document
  const who = partner === null ? '' : `, partner ${partner}`
  const { title, headline, limits, outcome } = createReport(document, { exact: true })
  const more = differences.length - MAX_CLASSES
  return [
    `${run}: ${from} to ${to}${who}${complete ? '' : ' (not complete)'}`,
    '',
    formatVerdicts(document),
    ...tableOf(differences, [
      ['field', ({ path: field }) => field],
      ['kind', ({ kind }) => kind],
      ['V2', ({ v2Class }) => v2Class],
      ['V3', ({ v3Class }) => v3Class],
      recordsColumn,
    ]),
    ...(more > 0 ? [`and ${more} more classes`] : []),
    ...tableOf(equivalences, [
      ['equivalent by', ({ rule }) => rule],
      ['field', ({ path: field }) => field],
      recordsColumn,
    ]),
    ...formatNoise(document),
    '',
    [`${title}: ${headline}`, ...limits].join(' '),
    ...(outcome !== 'differs'
      ? []
      : [`markbridge compare report ${run} explains what each class may mean and what to do.`]),
    `The report on ${formatCounted(compared, 'record')} is in ${path}.`,
  ].join('\n')
}

const recordsColumn = ['records', ({ count }: { readonly count: number }) => formatCount(count)] as const

function tableOf<Row>(
  rows: readonly Row[],
  columns: Parameters<typeof formatTable<Row>>[1],
): readonly string[] {
  return rows.length === 0 ? [] : ['', formatTable(rows.slice(0, MAX_CLASSES), columns)]
}

function formatVerdicts({ verdicts: counts, compared }: RunDocument): string {
  return formatTable(verdicts, [
    ['verdict', (verdict) => verdict],
    ['records', (verdict) => formatCount(counts[verdict])],
    [
      'share',
      (verdict) => (counts[verdict] > 0 ? `${((counts[verdict] / compared) * 100).toFixed(2)} %` : ''),
    ],
    ['', (verdict) => (counts[verdict] > 0 ? verdictTexts[verdict].meaning : '')],
  ])
}

function formatNoise({ noise, askedAgain }: RunDocument): readonly string[] {
  const again = askedAgain === 0 ? [] : [`${formatCount(askedAgain)} records were read a second time.`]
  const own =
    noise.records === 0
      ? 'Two reads of V2 agree.'
      : `${formatCount(noise.records)} records differ between two reads of V2. The fields that differ do not count.`
  const lines = [...(noise.measured ? [own] : []), ...again]
  return lines.length === 0 ? [] : ['', ...lines]
}

export function describeFailure(
  { kind, failures }: Pick<RunResult, 'kind' | 'failures'>,
  unreachable: string | undefined,
): string {
  const remedy =
    'The document of the run contains only the records that were compared. Run the comparison again.'
  if (kind === 'stopped') return `The run was stopped. ${remedy}`
  const [first] = failures
  const isRest = kind !== 'refused' && failures.length > 1
  const more = isRest ? ` ${failures.length - 1} more windows could not be compared.` : ''
  const why = first === undefined ? '' : `${describeWindow(first, unreachable)}${more} `
  return `${kind === 'failing' ? 'The run ended early, since several windows in a row failed. ' : ''}${why}${remedy}`
}

function describeWindow(
  { window, side, cause }: RunResult['failures'][number],
  unreachable: string | undefined,
): string {
  const { fromMs, toMs } = window
  const days = toMs > fromMs ? ` (${formatDay(fromMs)} to ${formatDay(Math.max(fromMs, toMs - DAY_MS))})` : ''
  return describeCause(side, cause, { days, unreachable })
}

/** Describes an error of a service and its remedy. Leaves out the message of the service, which may quote the query. */
export function describeCause(
  side: 'V2' | 'V3',
  cause: AdapterError,
  { days = '', unreachable }: { readonly days?: string; readonly unreachable?: string | undefined } = {},
): string {
  const variable = `MARKBRIDGE_${side === 'V3' ? 'V3_' : ''}`
  switch (cause.code) {
    case 'ADP_TOKEN':
    case 'ADP_SUBSCRIPTION_KEY':
      return `${side} rejected the credentials (401). Check ${variable}SUBSCRIPTION_KEY and ${variable}TOKEN, or the credentials of the partner.`
    case 'ADP_FORBIDDEN':
      return `${side} does not allow these credentials to read the marks (403). The school may have withdrawn its consent, or the application lacks the permission.`
    case 'ADP_NOT_FOUND':
      return `${side} has no such path (404). Check the base address of ${side}.`
    case 'ADP_UPSTREAM_REFUSED':
      return `${side} rejected the query${days}: ${cause.details.map(({ code }) => codeOf(code)).join(', ') || 'its reply has no error code'}.`
    case 'ADP_UPSTREAM_PROTOCOL':
    case 'ADP_QUERY':
      return `${side}${days}: ${cause.message}`
    default:
      return `${side} was not available${days}${unreachable === undefined ? '' : `: ${unreachable}`}.`
  }
}

/** Returns an error code that has the form of a code. Any other text may contain a value, so it is not shown. */
function codeOf(code: string): string {
  return /^[A-Z][A-Za-z_]{0,40}\d{0,3}$/.test(code) ? code : 'an unknown error code'
}
