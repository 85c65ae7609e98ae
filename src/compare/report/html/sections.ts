import type { CountedGroup } from '../../run-document.ts'
import { verdicts, verdictTexts } from '../../verdict.ts'
import { explainRule } from '../explanations.ts'
import { formatBound, formatCount, formatLongDay, formatShare } from '../format.ts'
import type { Report, ReportedClass } from '../report.ts'
import { attentionOf, bar, columnChart, legendOf, lengthOf, sumOf, swatch, toColumns } from './charts.ts'
import { type Content, html, type Markup } from './markup.ts'

type Run = Report['run']

/** A part of the page below a heading of its own. */
const section = (id: string, title: string, lead: Content, body: Content): Markup =>
  html`<section aria-labelledby="${id}">
    <h2 id="${id}">${title}</h2>
    <p class="lead">${lead}</p>
    ${body}
  </section>`

const MOST_LISTED = 200

/** A table that scrolls by itself. The first cell of a row is its header; `numbers` of the last columns are aligned to the right. */
function table(
  name: string,
  headings: readonly Content[],
  numbers: number,
  rows: readonly (readonly Content[])[],
): Markup {
  const classOf = (column: number): Content => column >= headings.length - numbers && html` class="n"`
  const cell = (content: Content, column: number): Markup =>
    column === 0 ? html`<th scope="row">${content}</th>` : html`<td${classOf(column)}>${content}</td>`
  const more = rows.length - MOST_LISTED
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Table: ${name}">
      <table>
        <thead>
          <tr>
            ${headings.map((heading, column) => html`<th scope="col" ${classOf(column)}>${heading}</th>`)}
          </tr>
        </thead>
        <tbody>
          ${rows.slice(0, MOST_LISTED).map(
            (cells) =>
              html`<tr>
                ${cells.map(cell)}
              </tr>`,
          )}
        </tbody>
      </table>
    </div>
    ${more > 0 && html`<p class="note">${more} more are in the report as CSV or JSON.</p>`}`
}

const folded = (summary: string, body: Content): Markup =>
  html`<details>
    <summary>Table: ${summary}</summary>
    ${body}
  </details>`

/** A path of member names, which may break after each slash. */
function codePath(path: string): Markup {
  const [first = '', ...others] = path.split('/')
  return html`<code>${first}${others.map((name) => html`/<wbr />${name}`)}</code>`
}

/** One bar of all verdicts, and their counts below it. */
export function verdictSection({ verdicts: counts, compared }: Run): Markup {
  const parts = verdicts
    .map((verdict) => ({ name: verdict, count: counts[verdict] }))
    .filter(({ count }) => count > 0)
  const words = parts.map(({ name, count }) => `${verdictTexts[name].label} ${formatCount(count)}`)
  const rows = verdicts.map((verdict) => [
    html`${swatch(verdict)} ${verdictTexts[verdict].label}`,
    verdictTexts[verdict].meaning,
    formatCount(counts[verdict]),
    counts[verdict] > 0 && formatShare(counts[verdict], compared),
  ])
  return section(
    'verdicts',
    'Verdicts',
    `Records compared: ${formatCount(compared)}, each with exactly one verdict.`,
    html`${parts.length > 0 && bar(parts, lengthOf(parts), `Verdicts: ${words.join(', ')}`)}
    ${table('Verdicts', ['Verdict', 'Meaning', 'Records', 'Share'], 2, rows)}`,
  )
}

type TrustRow = readonly [level: 'good' | 'note' | 'bad', name: string, value: string, text: string]
const levels = { good: 'Good', note: 'Note', bad: 'Attention' }

/** How far the verdicts can be trusted. */
export function trustSection({ run, outcome, doubts }: Report): Markup {
  const { complete, offered, compared, dropped, skipped, askedAgain } = run
  const isEnough = complete && !doubts.includes('tooFewCompared') && compared > 0
  const left = `${formatCount(dropped)} dropped, ${formatCount(skipped)} skipped`
  const end = complete ? 'The run came to its end.' : 'The run was stopped before its end.'
  const trust: readonly TrustRow[] = [
    [
      isEnough ? 'good' : 'bad',
      'Completeness',
      formatShare(compared, offered) ?? 'nothing',
      `${formatCount(compared)} of ${formatCount(offered)} offered records compared; ${left}. ${end}`,
    ],
    noiseOf(run, outcome),
    ownRulesOf(run),
    [
      'good',
      'Asked again',
      formatCount(askedAgain),
      askedAgain === 0
        ? 'No record had to be read again.'
        : 'records were read again before they were judged, since they seemed to differ or had changed meanwhile.',
    ],
  ]
  const rows = trust.map(([level, name, value, text]) => [
    name,
    html`<span class="hidden">${levels[level]}: </span><strong class="${level}">${value}</strong>`,
    text,
  ])
  const lead = 'What the verdicts rest on, and what limits them.'
  return section('trust', 'How far to trust it', lead, table('Trust', ['What', 'Result', 'Meaning'], 0, rows))
}

function noiseOf({ noise: { measured, records }, kind }: Run, outcome: Report['outcome']): TrustRow {
  const name = 'Noise of V2'
  if (!measured) {
    const advice =
      kind === 'reads' ? 'Run again with --noise to tell.' : 'compare run --noise reads V2 twice.'
    const text = `V2 was read once: a difference may be one that V2 has with itself. ${advice}`
    return [outcome === 'differs' ? 'bad' : 'note', name, 'not measured', text]
  }
  if (records === 0) return ['good', name, 'none', 'V2 was read twice and agreed with itself.']
  const text = 'records in which V2 differs from itself. These fields do not count as differences.'
  return ['good', name, formatCount(records), text]
}

function ownRulesOf({ ownRules: rules }: Run): TrustRow {
  const name = 'Own rules'
  const expired = rules.filter((rule) => rule.expired).length
  if (rules.length === 0) return ['good', name, 'none', 'Only the built-in rules made records equivalent.']
  if (expired > 0) {
    const text = 'What expired rules had accepted counts as different again.'
    return ['bad', name, `${expired} of ${rules.length} expired`, text]
  }
  const text = 'Differences that the partner has accepted, each with an owner and an end; listed below.'
  return ['note', name, `${rules.length}`, text]
}

const MOST_EXPLAINED = 10

/** The largest classes of difference with what they mean and what to do, then the others as a table. */
export function classSection({ classes, run }: Report): Markup {
  if (classes.length === 0) return section('classes', 'Differences', 'No record differs.', undefined)
  const [explained, others] = [classes.slice(0, MOST_EXPLAINED), classes.slice(MOST_EXPLAINED)]
  const most = Math.max(1, ...explained.map(({ count }) => count))
  const number = classes.length === 1 ? 'One class' : `${classes.length} classes`
  const lead =
    others.length > 0 ? `The ten largest of ${classes.length} classes.` : `${number} of differences.`
  const rows = others.map(({ path, kind, v2Class, v3Class, explanation, count }) => [
    ...[
      codePath(path),
      rowNames.get(kind) ?? kind,
      html`<code>${v2Class}</code>`,
      html`<code>${v3Class}</code>`,
    ],
    ...[explanation.title, formatCount(count)],
  ])
  const headings = ['Field', 'Kind', 'V2', 'V3', 'Meaning', 'Records']
  const rest = table('Other classes of differences', headings, 1, rows)
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
  const { path, kind, v2Class, v3Class, count, explanation } = one
  const { title, meaning, cause, remedy } = explanation
  const rowName = rowNames.get(kind)
  const share = formatShare(count, compared)
  const pair = html`${codePath(path)} ${kind}: V2 <code>${v2Class}</code>, V3 <code>${v3Class}</code>`
  return html`<li>
    <h3>${title}</h3>
    <p class="note">
      ${formatCount(count)} records${share !== undefined && ` (${share})`}: ${rowName ?? pair}
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

const names = new Map([
  ['code:present', 'Present codes'],
  ['code:absent', 'Absent codes'],
  ['code:neither', 'Codes that are neither'],
  ['marks', 'Marks'],
  ['registrations', 'Registrations'],
  ['batch', 'Batches of marks'],
  ['record', 'Single marks'],
  ['readFilter', 'Reads by filter'],
  ['readKey', 'Reads by key'],
  ['reply', 'reply'],
  ['visible', 'seen on V3'],
  ['readBack', 'read back on V2'],
  ['answers', 'answers'],
])

/** A class of codes, or a kind of record or request, in words; for live checks with what was checked. A name that is not known stays. */
function wordsOf(name: string): string {
  const parts = name.split('/')
  return parts.every((part) => names.has(part)) ? parts.map((part) => names.get(part)).join(', ') : name
}

const figure = (title: string, text: Content, body: Content): Markup =>
  html`<figure class="chart">
    <figcaption>
      <h3>${title}</h3>
      <p>${text}</p>
    </figcaption>
    ${body}
  </figure>`

const chartHeading = html`<span class="hidden">Chart</span>`

/** Groups as rows, verdicts as columns; with a bar of those that ask for attention where any does. */
function groupTable(
  heading: string,
  groups: readonly CountedGroup[],
  nameOf: (name: string) => string,
): Markup {
  const most = Math.max(...groups.map((group) => lengthOf(attentionOf(group))))
  const rows = groups.map((group) => [
    nameOf(group.name),
    ...(most === 0 ? [] : [bar(attentionOf(group), most)]),
    ...verdicts.map((verdict) => formatCount(group.verdicts[verdict])),
  ])
  const labels = verdicts.map((verdict) => verdictTexts[verdict].label)
  const headings = [heading, ...(most === 0 ? [] : [chartHeading]), ...labels]
  return html`${most > 0 && legendOf(groups)} ${table(`${heading}: verdicts`, headings, labels.length, rows)}`
}

const groupChart = (title: string, heading: string, groups: readonly CountedGroup[]): Content =>
  groups.length > 0 &&
  figure(
    title,
    'Records by verdict. Bars have those that ask for attention.',
    groupTable(heading, groups, wordsOf),
  )

/** Where records differ, or, where none does, what was compared: by day, field, class of the code and kind, and how long marks took. */
export function chartSection({ run, classes }: Report): Content {
  const charts = [
    dayChart(run),
    fieldChart(run.differences),
    groupChart('By code class', 'Class', run.codeClasses),
    groupChart('By kind', 'Kind', run.kinds),
    delayChart(run.delays),
  ].filter((chart) => chart !== false)
  if (charts.length === 0) return undefined
  return classes.length === 0
    ? section('charts', 'What was compared', 'The records that the verdicts cover.', charts)
    : section('charts', 'Where it differs', 'The same records by what they are of.', charts)
}

function dayChart({ kind, days }: Run): Content {
  if (days.length === 0) return false
  const columns = toColumns(days)
  const { unit, groups } = columns
  const { summary, chart } = columnChart(columns)
  const of = kind === 'live' ? 'comparison' : 'session'
  const heading = unit === 'day' ? 'Day' : `${unit === 'week' ? 'Week' : 'Month'} of`
  return figure('Over time', `Records that ask for attention, by ${unit} of the ${of}. ${summary}`, [
    chart,
    folded(`verdicts by ${unit}`, groupTable(heading, groups, formatLongDay)),
  ])
}

const MOST_FIELDS = 12

function fieldChart(differences: Run['differences']): Content {
  const fields = [...Map.groupBy(differences, ({ path }) => path)]
    .map(([path, classes]) => ({
      path,
      classes: classes.length,
      count: sumOf(classes.map(({ count }) => count)),
    }))
    .sort((one, other) => other.count - one.count)
  const [largest] = fields
  if (largest === undefined) return false
  const rows = fields.slice(0, MOST_FIELDS).map(({ path, classes, count }) => {
    const parts = [{ name: 'differs', count }]
    return [codePath(path), bar(parts, largest.count), formatCount(count), String(classes)]
  })
  const more = fields.length > MOST_FIELDS && ` The ${MOST_FIELDS} largest of ${fields.length} fields.`
  return figure(
    'By field',
    ['Records that differ in a field. A record that differs in two counts in both.', more],
    table('Fields', ['Field', chartHeading, 'Records', 'Classes'], 2, rows),
  )
}

function delayChart(delays: Run['delays']): Content {
  const counts = delays.map(({ count }) => count)
  const total = sumOf(counts)
  if (total === 0) return false
  const rows = delays.map(({ upToMs, count }, index) => {
    const parts = [{ name: 'delay', count }]
    const visible = formatShare(sumOf(counts.slice(0, index + 1)), total)
    const upTo = upToMs === null ? 'longer' : formatBound(upToMs)
    return [upTo, bar(parts, Math.max(...counts)), formatCount(count), visible]
  })
  return figure(
    'Delay',
    'Time until a mark that one side had accepted was visible on the other.',
    table('Delay', ['Up to', chartHeading, 'Marks', 'Visible by then'], 2, rows),
  )
}

/** What made records equivalent, the partner's own rules, and the noise of V2. */
export function ruleSections({ run: { equivalences, verdicts: counts, ownRules, noise } }: Report): Content {
  return [
    equivalences.length > 0 &&
      section(
        'equivalences',
        'What counts as equivalent',
        `${formatCount(counts.equivalent)} records are written differently and mean the same by these rules. A record can need several.`,
        table(
          'Equivalences',
          ['Rule', 'Meaning', 'Field', 'Records'],
          1,
          equivalences.map(({ rule, path, count }) => {
            const meaning = explainRule(rule) ?? 'a rule of the partner’s own'
            return [html`<code>${rule}</code>`, meaning, codePath(path), formatCount(count)]
          }),
        ),
      ),
    ownRules.length > 0 &&
      section(
        'own-rules',
        'Own rules of the partner',
        'Differences that the partner accepts.',
        table(
          'Own rules',
          ['Rule', 'Field', 'Reason', 'Owner', 'Counts until', 'Records'],
          1,
          ownRules.map(({ name, path, reason, owner, expires, expired, count }) => {
            const until = html`${formatLongDay(expires)}${expired && html` <strong class="bad">expired</strong>`}`
            return [name, codePath(path), reason, owner, until, formatCount(count)]
          }),
        ),
      ),
    noise.differences.length > 0 &&
      section(
        'noise',
        'Noise: V2 against itself',
        'V2 was read twice. In these fields it differs from itself, so they say nothing of V3.',
        table(
          'Noise',
          ['Field', 'Kind', 'Records'],
          1,
          noise.differences.map(({ path, kind, count }) => [codePath(path), kind, formatCount(count)]),
        ),
      ),
  ]
}
