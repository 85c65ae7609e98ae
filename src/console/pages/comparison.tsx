import { formatCount, formatLongDay, formatShare } from '../../compare/report/format.ts'
import { reportPolicy } from '../../compare/report/html/page.ts'
import { createReport, type Report } from '../../compare/report/report.ts'
import { writeReport } from '../../compare/report/write-report.ts'
import { type RunDocument } from '../../compare/run-document.ts'
import { isRunId, type ListedRun } from '../../compare/run/read-runs.ts'
import { verdictTexts } from '../../compare/verdict.ts'
import { sees } from '../../rollout/operators.ts'
import { notFound, type Visit } from '../access/visit.ts'
import type { ConsolePorts, LiveResult } from '../ports.ts'
import type { Page } from './page.ts'
import { VerdictBadge } from './partners.tsx'
import { Badge, Facts, formatTrend, Notice, PartnerLink, Section, table, Time } from './parts.tsx'

/** Counts are rounded as in reports, since a small count may identify a child. */
const ROUNDED = { exact: false }
const MAX_RUNS = 100
/**
 * The maximum number of classes of differences in a list, on a page, and in a report or JSON. Each class takes 50 µs in the process that
 * serves clients.
 */
const [LISTED, SHOWN, EXPLAINED] = [5, 20, 500]

export const comparison: Page = {
  path: '/comparison',
  show: async ({ actor }, { comparison: desk }) => {
    const live = (await desk.live()).filter(({ partner }) => sees(actor, partner))
    // A run has no partner, so people who are limited to some partners do not see runs.
    const isLimited = actor.partners !== undefined
    const runs = isLimited ? [] : (await desk.runs()).slice(0, MAX_RUNS)
    const found = live.map((one) => ({
      ...one,
      report: createReport(clip(one.document, LISTED), { ...ROUNDED, advice: one.advice }),
    }))
    return {
      title: 'Comparison',
      json: {
        live: found.map(({ report: { run: shown }, verdict, trend }) => ({ verdict, ...shown, trend })),
        runs,
      },
      body: (
        <>
          <Section title="Live comparison">
            <p class="soft">
              The results of the latest stage and share at which the traffic of each partner was compared.
            </p>
            {liveTable(found)}
          </Section>
          {!isLimited && <Section title="Runs">{runTable(runs)}</Section>}
        </>
      ),
    }
  },
}

/** Keeps the classes with the most records, which come first in `differences`. */
const clip = (document: RunDocument, most: number): RunDocument => ({
  ...document,
  differences: document.differences.slice(0, most),
})

const EARLIER = 'The results belong to an earlier stage or share, so the advice does not use them.'
const NO_RUN = 'The folder of console.runs contains no run. Run markbridge compare run.'

const linkOf = (run: string): string => `/comparison/${encodeURIComponent(run)}`

const outcomeTones = { ready: 'good', differs: 'bad', inconclusive: 'note' } as const

const coverageOf = ({ compared, offered }: Pick<RunDocument, 'compared' | 'offered'>) =>
  formatShare(compared, offered)

const daysOf = ({ from, to }: Pick<RunDocument, 'from' | 'to'>): string =>
  from === to ? formatLongDay(from) : `${formatLongDay(from)} – ${formatLongDay(to)}`

type ClassOfDifference = Report['classes'][number]

const liveTable = table<LiveResult & { readonly report: Report }>(
  'Live comparison of each partner',
  'Live comparison has no results yet. It runs at shadow, and at later stages if partners[].check.v2 is set.',
  [
    ['Partner', ({ partner }) => <a href={linkOf(`live:${partner}`)}>{partner}</a>],
    [
      'Advice on the next step',
      ({ verdict }) => (verdict ? <VerdictBadge verdict={verdict} /> : 'last stage'),
    ],
    ['Most serious difference', ({ report: { classes } }) => classes[0]?.explanation.title ?? 'none'],
    ['Likely cause', ({ report: { classes } }) => classes[0]?.explanation.cause],
    ['Compared', ({ report: { run: shown } }) => shown.compared],
    ['Coverage', ({ report: { run: shown } }) => coverageOf(shown)],
    ['Last compared', ({ document }) => <Time at={document.endedAt} />],
    ['Differing, at all stages', ({ trend }) => formatTrend(trend)],
  ],
)

const runTable = table<ListedRun>('Runs, newest first', NO_RUN, [
  ['Run', ({ run: id, summary }) => (summary && isRunId(id) ? <a href={linkOf(id)}>{id}</a> : id)],
  ['Partner', ({ summary }) => summary?.partner],
  ['Days', ({ summary }) => summary && daysOf(summary)],
  [
    'Outcome',
    ({ summary, fault }) =>
      summary ? <Badge tone={outcomeTones[summary.outcome]}>{summary.outcome}</Badge> : `not a run: ${fault}`,
  ],
  ['Coverage', ({ summary }) => summary && coverageOf(summary)],
  ['Ended', ({ summary }) => <Time at={summary?.endedAt} />],
])

export const run: Page = {
  path: '/comparison/:run',
  show: async (visit, ports) => {
    const { document, advice, verdict, trend } = await findRun(visit, ports)
    const found = createReport(clip(document, EXPLAINED), { ...ROUNDED, advice })
    const { run: shown, outcome, headline, limits, classes } = found
    const isLive = document.kind === 'live'
    const { partner } = shown
    const title = isLive ? `Live comparison of ${document.partner}` : document.run
    return {
      title,
      status: `${outcome} · ${title}`,
      json: { ...toJson(found), verdict },
      body: (
        <>
          <Notice
            tone={outcomeTones[outcome]}
            what={headline}
            remedy={[...limits, ...(isLive && advice === undefined ? [EARLIER] : [])].join(' ')}
          />
          <Facts
            of={[
              ['Advice on the next step', verdict ? <VerdictBadge verdict={verdict} /> : false],
              ['Partner', partner && <PartnerLink id={partner} />],
              ['Records of', daysOf(shown)],
              ['Compared', `${formatCount(shown.compared)} of ${formatCount(shown.offered)}`],
              ['Dropped, because the adapter had no time', shown.dropped],
              ['Skipped, because V2 refused the record or no reply arrived', shown.skipped],
              [verdictTexts.unknown.label, shown.verdicts.unknown],
              ['Differing, at all stages', trend ? formatTrend(trend) : false],
            ]}
          />
          <Section title="What differs, most serious first">
            {classTable(classes.slice(0, SHOWN))}
            <p>
              <a href={`${linkOf(visit.params['run'] ?? '')}/report`}>The whole report</a> explains each
              difference, to keep or to print. Counts are multiples of 5.
              {document.differences.length > EXPLAINED &&
                ` The report shows the ${EXPLAINED} largest classes of differences. markbridge compare report prints all classes.`}
            </p>
          </Section>
        </>
      ),
    }
  },
}

const classTable = table<ClassOfDifference>('What differs, most serious first', 'No records differ.', [
  ['Difference', ({ explanation }) => explanation.title],
  ['Records', ({ count }) => count],
  ['Likely cause', ({ explanation }) => explanation.cause],
  ['V2 → V3', ({ v2Class, v3Class }) => `${v2Class} → ${v3Class}`],
  ['What to do', ({ explanation }) => explanation.remedy],
])

/** Serves the report that `markbridge compare report` writes, unchanged. */
export const report: Page = {
  path: '/comparison/:run/report',
  show: async (visit, ports) => {
    const { document: whole, advice } = await findRun(visit, ports)
    const [document, options] = [clip(whole, EXPLAINED), { ...ROUNDED, advice }]
    return {
      title: document.run,
      json: toJson(createReport(document, options)),
      body: null,
      document: { html: writeReport(document, 'html', options), policy: reportPolicy },
    }
  },
}

const toJson = ({ run: shown, outcome, doubts, headline, classes }: Report): object => ({
  ...{ outcome, doubts, headline, ...shown, classes },
})

type FoundRun = Pick<LiveResult, 'document'> & Partial<LiveResult>

const LIVE = 'live:'

/** Finds the run in the path. Throws `ADP_NOT_FOUND` if there is no such run or the person may not see the run. */
async function findRun({ actor, params }: Visit, { comparison: desk }: ConsolePorts): Promise<FoundRun> {
  const { run: id = '' } = params
  if (id.startsWith(LIVE)) {
    const partner = id.slice(LIVE.length)
    const [found] = sees(actor, partner) ? await desk.live(partner) : []
    if (found === undefined) throw notFound('comparison')
    return found
  }
  if (actor.partners !== undefined || !isRunId(id)) throw notFound('comparison')
  if (!(await desk.runs()).some((one) => one.run === id)) throw notFound('comparison')
  return { document: { ...(await desk.run(id)), run: id } }
}
