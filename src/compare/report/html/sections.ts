import { type RunDocument } from '../../run-document.ts'
import { verdicts, verdictTexts } from '../../verdict.ts'
import { explainRule, gravityTexts } from '../explanations.ts'
import { formatBound, formatCount, formatLongDay, formatShare } from '../format.ts'
import type { Report, ReportedClass } from '../report.ts'
import { attentionOf, bar, columnChart, legendOf, lengthOf, sumOf, swatch } from './charts.ts'
import { type Content, html, type Markup } from './markup.ts'

type Run = RunDocument
type Groups = Run['days']

const section = (id: string, title: string, lead: Content, body: Content): Markup =>
  html`<section aria-labelledby="${id}">
    <h2 id="${id}">${title}</h2>
    <p class="lead">${lead}</p>
    ${body}
  </section>`

const MOST_LISTED = 200

/** A column of a table. The first column contains the row headings. Numbers are aligned to the right. */
type Column<Row> = readonly [heading: Content, cell: (row: Row) => Content, align?: 'number']

function table<Row>(name: string, rows: readonly Row[], columns: readonly Column<Row>[]): Markup {
  const classOf = ([, , align]: Column<Row>): Content => align !== undefined && html` class="n"`
  const cellOf = (row: Row) => (column: Column<Row>, at: number) =>
    at === 0
      ? html`<th scope="row">${column[1](row)}</th>`
      : html`<td${classOf(column)}>${column[1](row)}</td>`
  const more = rows.length - MOST_LISTED
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Table: ${name}">
      <table>
        <thead>
          <tr>
            ${columns.map((column) => html`<th scope="col" ${classOf(column)}>${column[0]}</th>`)}
          </tr>
        </thead>
        <tbody>
          ${rows.slice(0, MOST_LISTED).map(
            (row) =>
              html`<tr>
                ${columns.map(cellOf(row))}
              </tr>`,
          )}
        </tbody>
      </table>
    </div>
    ${more > 0 && html`<p class="note">The CSV and JSON reports list ${more} more rows.</p>`}`
}

const folded = (summary: string, body: Content): Markup =>
  html`<details>
    <summary>Table: ${summary}</summary>
    ${body}
  </details>`

function codePath(path: string): Markup {
  const [first = '', ...others] = path.split('/')
  return html`<code>${first}${others.map((name) => html`/<wbr />${name}`)}</code>`
}

interface Counted {
  readonly path: string
  readonly count: number
}
const fieldColumn: Column<Counted> = ['Field', ({ path }) => codePath(path)]
const recordsColumn: Column<Pick<Counted, 'count'>> = ['Records', ({ count }) => formatCount(count), 'number']

export function verdictSection({ verdicts: counts, compared }: Run): Markup {
  const parts = verdicts
    .map((verdict) => ({ name: verdict, count: counts[verdict] }))
    .filter(({ count }) => count > 0)
  const words = parts.map(({ name, count }) => `${verdictTexts[name].label} ${formatCount(count)}`)
  return section(
    'verdicts',
    'Verdicts',
    `Records compared: ${formatCount(compared)}, each with exactly one verdict.`,
    html`${parts.length > 0 && bar(parts, lengthOf(parts), `Verdicts: ${words.join(', ')}`)}
    ${table('Verdicts', verdicts, [
      ['Verdict', (verdict) => html`${swatch(verdict)} ${verdictTexts[verdict].label}`],
      ['Meaning', (verdict) => verdictTexts[verdict].meaning],
      ['Records', (verdict) => formatCount(counts[verdict]), 'number'],
      ['Share', (verdict) => counts[verdict] > 0 && formatShare(counts[verdict], compared), 'number'],
    ])}`,
  )
}

type TrustRow = readonly [level: keyof typeof levels, name: string, value: string, text: string]
const levels = { good: 'Good', note: 'Note', bad: 'Attention' }

export function trustSection({ run, outcome, doubts }: Report): Markup {
  const { complete, offered, compared, dropped, skipped, askedAgain, noise, ownRules } = run
  const isEnough = complete && !doubts.includes('tooFewCompared') && compared > 0
  const expired = ownRules.filter((rule) => rule.expired).length
  const rows: readonly TrustRow[] = [
    [
      isEnough ? 'good' : 'bad',
      'Completeness',
      formatShare(compared, offered) ?? 'nothing',
      `${formatCount(compared)} of ${formatCount(offered)} records were compared. ${formatCount(dropped)} were dropped before the comparison began, and ${formatCount(skipped)} could not be compared. The run is ${complete ? '' : 'not '}complete.`,
    ],
    [
      noise.measured ? 'good' : outcome === 'differs' ? 'bad' : 'note',
      'Noise of V2',
      noise.measured ? formatCount(noise.records) : 'not measured',
      noise.measured
        ? 'records in which two reads of V2 differ. These fields do not count as differences.'
        : 'V2 was read once, so a difference may come from V2 alone. compare run --noise reads V2 twice.',
    ],
    [
      expired > 0 ? 'bad' : ownRules.length > 0 ? 'note' : 'good',
      'Own rules',
      expired > 0 ? `${expired} of ${ownRules.length} expired` : `${ownRules.length}`,
      'differences that the partner accepts, each with an owner and an expiry date. Fields of expired rules count as differences again.',
    ],
    [
      'good',
      'Read again',
      formatCount(askedAgain),
      'records that differed at first and were read again before they were judged.',
    ],
  ]
  const lead = 'The basis of the verdicts, and their limits.'
  const shown = table('Trust', rows, [
    ['What', ([, name]) => name],
    ['Result', ([level, , value]) => html`<span class="hidden">${levels[level]}: </span><strong class="${level}">${value}</strong>`], // prettier-ignore
    ['Meaning', ([, , , text]) => text],
  ])
  return section('trust', 'How far to trust the result', lead, shown)
}

const MOST_EXPLAINED = 10

export function classSection({ classes, run }: Report): Markup {
  if (classes.length === 0) return section('classes', 'Differences', 'No record differs.', undefined)
  const [explained, others] = [classes.slice(0, MOST_EXPLAINED), classes.slice(MOST_EXPLAINED)]
  const most = Math.max(1, ...explained.map(({ count }) => count))
  const number = others.length > 0 ? `The first ten of ${classes.length}` : classes.length
  const lead =
    classes.length === 1
      ? 'One class of differences.'
      : `${number} classes of differences, the most serious first.`
  const rest = table('Other classes of differences', others, [
    fieldColumn,
    ['Kind', ({ kind }) => rowNames.get(kind) ?? kind],
    ['V2', ({ v2Class }) => html`<code>${v2Class}</code>`],
    ['V3', ({ v3Class }) => html`<code>${v3Class}</code>`],
    ['Meaning', ({ explanation }) => explanation.title],
    recordsColumn,
  ])
  return section(
    'classes',
    'What differs, and what to do',
    `${lead} A class describes values without showing them.`,
    html`<ol class="classes">
        ${explained.map((one) => explainedClass(one, run.compared, most))}
      </ol>
      ${others.length > 0 && folded(`the other ${others.length === 1 ? 'class' : `${others.length} classes`}`, rest)}`,
  )
}

function explainedClass(one: ReportedClass, compared: number, most: number): Markup {
  const { path, kind, v2Class, v3Class, count, gravity, explanation } = one
  const { title, meaning, cause, remedy } = explanation
  const rowName = rowNames.get(kind)
  const share = formatShare(count, compared)
  const pair = html`${codePath(path)} ${kind}: V2 <code>${v2Class}</code>, V3 <code>${v3Class}</code>`
  return html`<li>
    <h3>${title}</h3>
    <p class="note">
      <strong>${gravityTexts[gravity]}</strong> · ${formatCount(count)}
      records${share !== undefined && ` (${share})`}: ${rowName ?? pair}
    </p>
    ${bar([{ name: rowName === undefined ? 'differs' : kind, count }], most)}
    <p>${meaning}</p>
    <dl>
      <dt>Likely cause</dt>
      <dd>${cause}</dd>
      <dt>What to do</dt>
      <dd>${remedy}</dd>
    </dl>
  </li>`
}

const rowNames: ReadonlyMap<ReportedClass['kind'], string> = new Map([
  ['onlyV2', 'only in V2'],
  ['onlyV3', 'only in V3'],
  ['unknown', 'unknown'],
])

const figure = (title: string, text: Content, body: Content): Markup =>
  html`<figure class="chart">
    <figcaption>
      <h3>${title}</h3>
      <p>${text}</p>
    </figcaption>
    ${body}
  </figure>`

const chartHeading = html`<span class="hidden">Chart</span>`

/** Renders a table with a row per group and a column per verdict. A bar is added to each row if any record needs attention. */
function groupTable(heading: string, groups: Groups, nameOf: (name: string) => Content): Markup {
  const most = Math.max(...groups.map((group) => lengthOf(attentionOf(group))))
  const chart: Column<Groups[number]> = [chartHeading, (group) => bar(attentionOf(group), most)]
  const columns = verdicts.map((verdict): Column<Groups[number]> => [
    verdictTexts[verdict].label,
    (group) => formatCount(group.verdicts[verdict]),
    'number',
  ])
  return html`${most > 0 && legendOf(groups)}
  ${table(`${heading}: verdicts`, groups, [[heading, ({ name }) => nameOf(name)], ...(most > 0 ? [chart] : []), ...columns])}`
}

const groupChart = (
  title: string,
  heading: string,
  groups: Groups,
  nameOf: (name: string) => Content = codePath,
): Content =>
  groups.length > 0 &&
  figure(
    title,
    'Records by verdict. Bars show the records that need attention.',
    groupTable(heading, groups, nameOf),
  )

/** Renders charts by day, field, hour, code class and kind, and a chart of the time that marks took to become visible. */
export function chartSection({ run, classes }: Report): Content {
  const charts = [
    dayChart(run),
    fieldChart(run.differences),
    groupChart('By hour of the comparison (UTC)', 'Hour', run.hours, (hour) => `${hour}:00`),
    groupChart('By code class', 'Class', run.codeClasses),
    groupChart('By kind', 'Kind', run.kinds),
    delayChart(run.delays),
  ].filter((chart) => chart !== false)
  if (charts.length === 0) return undefined
  return classes.length === 0
    ? section('charts', 'What was compared', 'The compared records in groups.', charts)
    : section('charts', 'Where it differs', 'The same records in groups.', charts)
}

function dayChart({ kind, days }: Run): Content {
  if (days.length === 0) return false
  const { summary, chart } = columnChart(days)
  const of = kind === 'live' ? 'comparison' : 'session'
  return figure('Over time', `Records that need attention, by day of the ${of}. ${summary}`, [
    chart,
    folded('verdicts by day', groupTable('Day', days, formatLongDay)),
  ])
}

const MOST_FIELDS = 12

function fieldChart(differences: Run['differences']): Content {
  const fields = [...Map.groupBy(differences, ({ path }) => path)]
    .map(([path, own]) => ({ path, classes: own.length, count: sumOf(own.map(({ count }) => count)) }))
    .sort((one, other) => other.count - one.count)
  const [largest] = fields
  if (largest === undefined) return false
  const more = fields.length > MOST_FIELDS && ` The ${MOST_FIELDS} largest of ${fields.length} fields.`
  return figure(
    'By field',
    ['Records that differ in a field. A record that differs in two fields counts in both.', more],
    table('Fields', fields.slice(0, MOST_FIELDS), [
      fieldColumn,
      [chartHeading, ({ count }) => bar([{ name: 'differs', count }], largest.count)],
      recordsColumn,
      ['Classes', ({ classes }) => String(classes), 'number'],
    ]),
  )
}

function delayChart(delays: Run['delays']): Content {
  const counts = delays.map(({ count }) => count)
  const total = sumOf(counts)
  if (total === 0) return false
  const rows = delays.map((delay, index) => ({ ...delay, visible: sumOf(counts.slice(0, index + 1)) }))
  return figure(
    'Delay',
    'Time until a mark that one side accepted was visible on the other.',
    table('Delay', rows, [
      ['Up to', ({ upToMs }) => (upToMs === null ? 'longer' : formatBound(upToMs))],
      [chartHeading, ({ count }) => bar([{ name: 'delay', count }], Math.max(...counts))],
      ['Marks', ({ count }) => formatCount(count), 'number'],
      ['Visible by then', ({ visible }) => formatShare(visible, total), 'number'],
    ]),
  )
}

const listed = <Row>(
  id: string,
  title: string,
  lead: string,
  rows: readonly Row[],
  columns: readonly Column<Row>[],
): Content => rows.length > 0 && section(id, title, lead, table(title, rows, columns))

export function ruleSections({ run: { equivalences, verdicts: counts, ownRules, noise } }: Report): Content {
  const equivalent = `${formatCount(counts.equivalent)} records differ in form only, which these rules accept. A record can need several rules.`
  return [
    listed('equivalences', 'What counts as equivalent', equivalent, equivalences, [
      ['Rule', ({ rule }) => html`<code>${rule}</code>`],
      ['Meaning', ({ rule }) => explainRule(rule) ?? 'a rule of the partner’s own'],
      fieldColumn,
      recordsColumn,
    ]),
    listed('own-rules', 'The partner’s own rules', 'Differences that the partner accepts.', ownRules, [
      ['Rule', ({ name }) => name],
      fieldColumn,
      ['Reason', ({ reason }) => reason],
      ['Owner', ({ owner }) => owner],
      ['Applies until', ({ expires, expired }) => [formatLongDay(expires), expired && html` <strong class="bad">expired</strong>`]], // prettier-ignore
      recordsColumn,
    ]),
    listed(
      'noise',
      'Noise: V2 against itself',
      'V2 was read twice. In these fields the two reads differ, so the fields prove nothing about V3.',
      noise.differences,
      [fieldColumn, ['Kind', ({ kind }) => kind], recordsColumn],
    ),
  ]
}
