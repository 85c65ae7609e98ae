import type { RunDocument } from '../../compare/run-document.ts'
import type { RunResult } from '../../compare/run/index.ts'
import { doubtsOf, outcomeOf, type RunDoubt } from '../../compare/run-outcome.ts'
import { type Verdict, verdicts } from '../../compare/verdict.ts'
import { formatCounted, formatTable } from '../text-table.ts'

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
