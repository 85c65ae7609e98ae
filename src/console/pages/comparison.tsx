import { formatLongDay, formatShare } from '../../compare/report/format.ts'
import { reportPolicy } from '../../compare/report/html/page.ts'
import { createReport, type Report } from '../../compare/report/report.ts'
import { writeReport } from '../../compare/report/write-report.ts'
import { isRunId, type ListedRun, type UnfinishedRun } from '../../compare/run/index.ts'
import type { RunDocument, RunOutcome } from '../../compare/run-document.ts'
import { verdicts, verdictTexts } from '../../compare/verdict.ts'
import { sees } from '../../rollout/operators.ts'
import { notFound, type Visit } from '../access/visit.ts'
import type { ConsolePorts, LiveResult } from '../ports.ts'
import type { Page } from './page.ts'
import { Badge, Chart, Facts, formatCount, Live, Section, Table, Time, type Tone } from './parts.tsx'
import { Trend } from './trend.tsx'

/** As reports are printed: a small count may point to a single child. */
const ROUNDED = { exact: false }
const MAX_RUNS = 100
/** Largest classes of difference of a list and of a page: to explain one takes 50 µs of the process that serves clients. */
const [LISTED, EXPLAINED] = [5, 500]
const DAY_MS = 86_400_000

/** What live comparison has found of each partner, and the runs of `markbridge compare run`. */
export const comparison: Page = {
  path: '/comparison',
  show: async ({ actor }, { comparison: desk }) => {
    const live = (await desk.live()).filter(({ partner }) => sees(actor, partner))
    // Runs belong to no partner: who is limited to some does not see them.
    const isLimited = actor.partners !== undefined
    const [unfinished, runs] = isLimited ? [[], []] : await Promise.all([desk.unfinished(), desk.runs()])
    const found = live.map((one) => ({ ...one, report: createReport(clip(one.document, LISTED), ROUNDED) }))
    const newest = runs.filter(({ run }) => unfinished.every((one) => one.run !== run)).slice(0, MAX_RUNS)
    return {
      title: 'Comparison',
      json: {
        live: found.map(({ report: { run: shown, outcome }, trend }) => ({ outcome, ...shown, trend })),
        unfinished: unfinished.map(({ run, progress, lastStepMs }) => ({ run, progress, lastStepMs })),
        runs: newest,
      },
      body: (
        <>
          <Section title="Live comparison">
            <p class="soft">What the traffic of each partner has shown at its stage and share.</p>
            <LiveResults found={found} />
          </Section>
          {!isLimited && (
            <Live id="runs" of={[unfinished, newest]}>
              {unfinished.length > 0 && (
                <Section title="Runs that have not ended">
                  <Unfinished runs={unfinished} />
                </Section>
              )}
              <Section title="Runs">
                <Runs runs={newest} />
              </Section>
            </Live>
          )}
        </>
      ),
    }
  },
}

/** A document with its largest classes alone; they stand in this order. */
const clip = (document: RunDocument, most: number): RunDocument => ({
  ...document,
  differences: document.differences.slice(0, most),
})

const outcomeTones: Readonly<Record<RunOutcome, Tone>> = {
  ready: 'good',
  differs: 'bad',
  inconclusive: 'note',
}

const RunLink = ({ run: id }: { readonly run: string }) => (
  <a class="name" href={linkOf(id)}>
    {id}
  </a>
)

const linkOf = (run: string): string => `/comparison/${encodeURIComponent(run)}`

function LiveResults({ found }: { readonly found: readonly (LiveResult & { readonly report: Report })[] }) {
  return (
    <Table
      caption="Live comparison of each partner"
      rows={found}
      columns={[
        ['Partner', ({ partner }) => <a href={linkOf(`live:${partner}`)}>{partner}</a>],
        ['Outcome', ({ report: { outcome } }) => <Outcome outcome={outcome} />],
        ['Since (UTC)', ({ document }) => <Time ms={Date.parse(document.startedAt)} />],
        ['Last (UTC)', ({ document }) => <Time ms={Date.parse(document.endedAt)} />],
        ['Compared', ({ report }) => formatCount(report.run.compared), 'number'],
        ['Coverage', ({ report }) => coverageOf(report.run), 'number'],
        ['Largest difference', ({ report }) => largestOf(report)],
        ['Trend', ({ trend }) => <Trend days={trend} />],
      ]}
      empty="Live comparison has found nothing yet. It runs at shadow, and later with partners[].check.v2."
    />
  )
}

const Outcome = ({ outcome }: { readonly outcome: RunOutcome }) => (
  <Badge tone={outcomeTones[outcome]}>{outcome}</Badge>
)

const coverageOf = ({ compared, offered }: Pick<RunDocument, 'compared' | 'offered'>): string =>
  formatShare(compared, offered) ?? '–'

/** The one with the most records; `classes` has the gravest first. */
function largestOf({ classes }: Report): string {
  const [largest] = classes.toSorted((one, other) => other.count - one.count)
  return largest === undefined ? 'none' : `${formatCount(largest.count)}: ${largest.explanation.title}`
}

function Unfinished({ runs }: { readonly runs: readonly UnfinishedRun[] }) {
  return (
    <Table
      caption="Runs that have not ended"
      rows={runs}
      columns={[
        ['Run', ({ run }) => <RunLink run={run} />],
        ['Partner', ({ document }) => document.partner ?? '–'],
        ['Progress', (run) => <Progress run={run} />],
        ['Last step (UTC)', ({ lastStepMs }) => <Time ms={lastStepMs} />],
      ]}
      empty=""
    />
  )
}

function Progress({ run: { run, progress } }: { readonly run: UnfinishedRun }) {
  const { done, total } = progress
  const id = `progress-${run}`
  return (
    <span class="trend">
      <progress id={id} value={done} max={total} aria-label={`Progress of ${run}`} />
      <span>
        {formatCount(done)} of {formatCount(total)} days
      </span>
    </span>
  )
}

function Runs({ runs }: { readonly runs: readonly ListedRun[] }) {
  return (
    <Table
      caption="Runs, the newest first"
      rows={runs}
      columns={[
        ['Run', ({ run, summary }) => (summary && isRunId(run) ? <RunLink run={run} /> : run)],
        ['Partner', ({ summary }) => summary?.partner ?? '–'],
        ['Days', ({ summary }) => (summary ? daysOf(summary) : '–')],
        [
          'Outcome',
          ({ summary, fault }) => (summary ? <Outcome outcome={summary.outcome} /> : `no run: ${fault}`),
        ],
        ['Coverage', ({ summary }) => (summary ? coverageOf(summary) : ''), 'number'],
        ['Ended (UTC)', ({ summary }) => <Time ms={summary && Date.parse(summary.endedAt)} />],
      ]}
      empty="There is none in the folder of console.runs. markbridge compare run makes one."
    />
  )
}

const daysOf = ({ from, to }: Pick<RunDocument, 'from' | 'to'>): string =>
  from === to ? formatLongDay(from) : `${formatLongDay(from)} – ${formatLongDay(to)}`

/** One run, or `live:<partner>`: what it found, and what each difference means. */
export const run: Page = {
  path: '/comparison/:run',
  show: async (visit, ports) => {
    const { document, unfinished, left } = await findRun(visit, ports)
    const found = createReport(document, ROUNDED)
    const { run: shown, outcome, headline, limits, classes } = found
    const isLive = document.kind === 'live'
    return {
      title: isLive ? `Live comparison of ${document.partner}` : document.run,
      json: { ...toJson(found), progress: unfinished?.progress },
      body: (
        <>
          <Live id="run" of={[shown, unfinished]}>
            {unfinished && <Progress run={unfinished} />}
            <div class={`notice ${outcomeTones[outcome]}`}>
              <p>{headline}</p>
              {unfinished ? <p>It has not ended, or was killed.</p> : limits.map((limit) => <p>{limit}</p>)}
            </div>
            <Facts
              of={[
                ['Partner', shown.partner ?? '–'],
                ['Records of', !isLive && daysOf(shown)],
                ['Since (UTC)', <Time ms={Date.parse(shown.startedAt)} />],
                [
                  isLive || unfinished ? 'Last (UTC)' : 'Ended (UTC)',
                  <Time ms={Date.parse(shown.endedAt)} />,
                ],
                ['Compared', formatCount(shown.compared)],
                ['Coverage', coverageOf(shown)],
                ['Dropped', formatCount(shown.dropped)],
                ['Skipped', formatCount(shown.skipped)],
              ]}
            />
            <p class="soft">
              Counts are multiples of 5. <a href={`${linkOf(nameOf(document))}/report`}>The whole report</a>{' '}
              is a page of its own, to keep or to print.
              {left > 0 &&
                ` Of all classes of difference the ${EXPLAINED} largest are here; markbridge compare report has all.`}
            </p>
            <div class="columns">
              <Verdicts run={shown} />
              <ByDay run={shown} />
            </div>
          </Live>
          <Section title="Differences">
            <p class="soft">
              By what they mean for a school, the gravest first; those of one kind by number.
            </p>
            <Classes classes={classes} />
          </Section>
        </>
      ),
    }
  },
}

/** The report of `markbridge compare report` as it is. */
export const report: Page = {
  path: '/comparison/:run/report',
  show: async (visit, ports) => {
    const { document } = await findRun(visit, ports)
    return {
      title: document.run,
      json: toJson(createReport(document, ROUNDED)),
      body: null,
      document: { html: writeReport(document, 'html', ROUNDED), policy: reportPolicy },
    }
  },
}

const LIVE = 'live:'

const nameOf = ({ kind, partner, run: name }: RunDocument): string =>
  kind === 'live' ? `${LIVE}${partner}` : name

/** The document of the run with what it says, each class with its explanation. */
const toJson = ({ run: shown, outcome, doubts, headline, classes }: Report): object => ({
  ...{ outcome, doubts, headline, ...shown, classes },
})

interface FoundRun {
  readonly document: RunDocument
  readonly unfinished: UnfinishedRun | undefined
  /** Classes of difference that the document had besides. */
  readonly left: number
}

const toFound = (document: RunDocument, unfinished?: UnfinishedRun): FoundRun => ({
  document: clip(document, EXPLAINED),
  unfinished,
  left: Math.max(0, document.differences.length - EXPLAINED),
})

/** The run of an address. Error: `ADP_NOT_FOUND` where there is none, and for those who may not see it. */
async function findRun({ actor, params }: Visit, { comparison: desk }: ConsolePorts): Promise<FoundRun> {
  const { run: id = '' } = params
  if (id.startsWith(LIVE)) {
    const partner = id.slice(LIVE.length)
    const [found] = sees(actor, partner) ? await desk.live(partner) : []
    if (found === undefined) throw notFound('comparison')
    return toFound(found.document)
  }
  if (actor.partners !== undefined || !isRunId(id)) throw notFound('comparison')
  const unfinished = (await desk.unfinished()).find((one) => one.run === id)
  if (unfinished !== undefined) return toFound(unfinished.document, unfinished)
  if (!(await desk.runs()).some((one) => one.run === id)) throw notFound('comparison')
  return toFound({ ...(await desk.run(id)), run: id })
}

function Verdicts({ run: { verdicts: counts, compared } }: { readonly run: RunDocument }) {
  return (
    <Section title="Verdicts">
      <Table
        caption="Records by verdict"
        rows={verdicts}
        columns={[
          ['Verdict', (verdict) => verdictTexts[verdict].label],
          ['Records', (verdict) => formatCount(counts[verdict]), 'number'],
          ['Share', (verdict) => formatShare(counts[verdict], compared), 'number'],
          ['Meaning', (verdict) => verdictTexts[verdict].meaning],
        ]}
        empty=""
      />
    </Section>
  )
}

const drawn = [
  ['differs', '--refused', undefined],
  ['onlyV2', '--parked', [12, 4, 2, 4]],
  ['onlyV3', '--unknown', [2, 3]],
  ['unknown', '--open', [4, 4]],
] as const

function ByDay({ run: { days, kind } }: { readonly run: RunDocument }) {
  const dated = days.filter(({ name }) => /^\d{4}-\d\d-\d\d$/.test(name))
  const [first, last] = [dated[0], dated.at(-1)].map((day) => Date.parse(day?.name ?? '1970-01-01'))
  if (first === undefined || last === undefined || dated.length === 0) return null
  const byDay = new Map(dated.map(({ name, verdicts: counts }) => [Date.parse(name), counts]))
  const all = Array.from({ length: (last - first) / DAY_MS + 1 }, (_, at) => byDay.get(first + at * DAY_MS))
  const series = drawn.map(([verdict, color, dash]) => ({
    ...{ label: verdictTexts[verdict].label, color, dash },
    values: all.map((counts) => counts?.[verdict] ?? null),
  }))
  return (
    <Section title={kind === 'live' ? 'By day of comparison' : 'By day of the records'}>
      <Chart title="Records that are not the same" fromMs={first} stepMs={DAY_MS} series={series} />
    </Section>
  )
}

const MOST_EXPLAINED = 20

function Classes({ classes }: Pick<Report, 'classes'>) {
  if (classes.length === 0) return <p class="empty">No record differs.</p>
  return (
    <>
      <ol class="findings">
        {classes.slice(0, MOST_EXPLAINED).map(({ path, kind, v2Class, v3Class, count, explanation }) => (
          <li>
            <h3>
              {formatCount(count)}: {explanation.title}
            </h3>
            <p>
              <code>
                {path}: {v2Class} → {v3Class}
              </code>{' '}
              ({kind})
            </p>
            <p>
              {explanation.meaning} {explanation.cause}
            </p>
            <p class="soft">{explanation.remedy}</p>
          </li>
        ))}
      </ol>
      {classes.length > MOST_EXPLAINED && (
        <p class="soft">{formatCount(classes.length - MOST_EXPLAINED)} more are in the whole report.</p>
      )}
    </>
  )
}
