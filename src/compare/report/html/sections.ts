import { explain, explainRule } from '../explanations.ts'
import { formatCount, formatLongDay, formatDuration, formatInstant, formatShare } from '../format.ts'
import { headlineOf } from '../headline.ts'
import { type ReportedClass, reportedClasses, type PublishedRun } from '../published-run.ts'
import { bar } from './bars.ts'
import { chartVerdicts } from './charts.ts'
import { type Content, html, type Markup } from './markup.ts'
import { codePath, scrollTable } from './tables.ts'

const signs = {
  ready: html`<path d="M13 25l7 7 15-16" />`,
  differs: html`<path d="M13 19h22M13 29h22M31 11L17 37" />`,
  inconclusive: html`<path d="M17.5 19a6.5 6.5 0 1 1 9.6 5.7c-2 1.1-3.1 2.4-3.1 4.3M24 34.6v.4" />`,
}

const sources = {
  reads: 'both services were read',
  recording: 'recorded exchanges',
  live: 'live traffic of a running adapter',
}

/** The outcome, in one sentence, and the figures behind it. */
export function sectionHeadline(run: PublishedRun): Markup {
  const { title, sentence, doubts } = headlineOf(run)
  const facts: readonly (readonly [string, string])[] = [
    ...(run.partner === null ? [] : [['Partner', run.partner] as const]),
    ['Records of', `${formatLongDay(run.from)} – ${formatLongDay(run.to)}`],
    ['Run', run.run],
    ['Source', sources[run.kind]],
    [
      'Ended',
      `${formatInstant(run.endedAt)}, after ${formatDuration(Date.parse(run.endedAt) - Date.parse(run.startedAt))}`,
    ],
  ]
  return html`<header>
      <p class="kicker">Comparison of V2 with V3 through Markbridge</p>
      <div class="outcome ${run.outcome}">
        <svg class="sign" viewBox="0 0 48 48" aria-hidden="true" focusable="false">
          <circle cx="24" cy="24" r="21" />
          ${signs[run.outcome]}
        </svg>
        <div>
          <h1>${title}</h1>
          <p class="sentence">${sentence}</p>
          ${doubts.map((doubt) => html`<p class="doubt">${doubt}</p>`)}
        </div>
      </div>
      <dl class="meta">
        ${facts.map(
          ([name, value]) =>
            html`<div>
              <dt>${name}</dt>
              <dd>${value}</dd>
            </div>`,
        )}
      </dl>
    </header>
    <section aria-labelledby="verdicts">
      <h2 id="verdicts">Verdicts</h2>
      <p class="lead">Records compared: ${formatCount(run.compared)}, each with exactly one verdict.</p>
      ${chartVerdicts(run)}
    </section>
    <section aria-labelledby="trust">
      <h2 id="trust">How far to trust it</h2>
      <ul class="trust">
        ${trustOf(run).map(
          ([level, name, value, text]) =>
            html`<li class="${level}">
              <span class="mark"><span class="hidden">${levels[level]}: </span></span>
              <div>
                <h3>${name}</h3>
                <p class="value">${value}</p>
                <p class="note">${text}</p>
              </div>
            </li>`,
        )}
      </ul>
    </section>`
}

const levels = { good: 'Good', note: 'Note', bad: 'Attention' }
type TrustRow = readonly [level: keyof typeof levels, name: string, value: string, text: string]

/** How far the verdicts can be trusted. */
function trustOf(run: PublishedRun): readonly TrustRow[] {
  const { complete, offered, compared, dropped, skipped, doubts, askedAgain } = run
  const isEnough = complete && !doubts.includes('tooFewCompared') && compared > 0
  const left = `${formatCount(dropped)} dropped, ${formatCount(skipped)} skipped`
  const end = complete ? 'The run came to its end.' : 'The run was stopped before its end.'
  return [
    [
      isEnough ? 'good' : 'bad',
      'Completeness',
      formatShare(compared, offered) ?? 'nothing',
      `${formatCount(compared)} of ${formatCount(offered)} offered records compared; ${left}. ${end}`,
    ],
    noiseOf(run),
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
}

function noiseOf({ noise: { measured, records }, outcome, kind }: PublishedRun): TrustRow {
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

function ownRulesOf({ ownRules: rules }: PublishedRun): TrustRow {
  const name = 'Own rules'
  const expired = rules.filter((rule) => rule.expired).length
  if (rules.length === 0) return ['good', name, 'none', 'Only the built-in rules made records equivalent.']
  if (expired > 0)
    return ['bad', name, `${expired} of ${rules.length} expired`, 'What expired rules had accepted counts as different again.'] // prettier-ignore
  const text = 'Differences that the partner has accepted, each with an owner and an end; listed below.'
  return ['note', name, `${rules.length}`, text]
}

const MOST_EXPLAINED = 10
const MOST_LISTED = 200

/** The largest classes of difference with what they mean and what to do, then the others as a table. */
export function sectionClasses(run: PublishedRun): Markup {
  const reported = reportedClasses(run)
  if (reported.length === 0)
    return html`<section aria-labelledby="classes">
      <h2 id="classes">Differences</h2>
      <p class="lead">No record differs.</p>
    </section>`
  const [explained, others] = [reported.slice(0, MOST_EXPLAINED), reported.slice(MOST_EXPLAINED)]
  const most = Math.max(1, ...explained.map(({ count }) => count))
  const classes = reported.length === 1 ? 'One class' : `${reported.length} classes`
  return html`<section aria-labelledby="classes">
    <h2 id="classes">What differs, and what to do</h2>
    <p class="lead">
      ${others.length > 0 ? `The ten largest of ${reported.length} classes.` : `${classes} of differences.`} A
      class describes values without showing them.
    </p>
    <ol class="classes">
      ${explained.map((one) => explainClass(one, run, most))}
    </ol>
    ${
      others.length > 0 &&
      html`<details>
        <summary>Table: the other ${others.length === 1 ? 'class' : `${others.length} classes`}</summary>
        ${listTable(
          'Other classes of differences',
          ['Field', 'Kind', 'V2', 'V3', 'Meaning'],
          others.map((one) => [
            codePath(one.path),
            rowNames.get(one.kind) ?? one.kind,
            html`<code>${one.v2Class}</code>`,
            html`<code>${one.v3Class}</code>`,
            explain(one).title,
            formatCount(one.count),
          ]),
        )}
      </details>`
    }
  </section>`
}

function explainClass(one: ReportedClass, { compared }: PublishedRun, most: number): Markup {
  const { path, kind, v2Class, v3Class, count } = one
  const { title, meaning, cause, remedy } = explain(one)
  const rowName = rowNames.get(kind)
  const share = formatShare(count, compared)?.replaceAll(' ', '\u00a0')
  const pair = html`${codePath(path)} <span class="kind">${kind}</span>
    <span class="pair"
      >V2 <code>${v2Class}</code> <span class="hidden">and</span><span aria-hidden="true">→</span> V3
      <code>${v3Class}</code></span
    >`
  return html`<li>
    <article>
      <div class="size">
        <p class="count">${formatCount(count)}</p>
        <p class="note">records${share !== undefined && `, ${share}`}</p>
        ${bar([{ name: rowName === undefined ? 'differs' : kind, count }], most)}
      </div>
      <div class="what">
        <h3>${title}</h3>
        <p class="class">${rowName === undefined ? pair : html`<span class="kind">${rowName}</span>`}</p>
        <p>${meaning}</p>
      </div>
      <dl class="why">
        <dt>Likely cause</dt>
        <dd>${cause}</dd>
        <dt>What to do</dt>
        <dd>${remedy}</dd>
      </dl>
    </article>
  </li>`
}

const rowNames: ReadonlyMap<ReportedClass['kind'], string> = new Map([
  ['onlyV2', 'only in V2'],
  ['onlyV3', 'only in V3'],
  ['unknown', 'unknown'],
])

/** What made records equivalent, the partner's own rules, and the noise of V2. */
export function sectionRules({ equivalences, verdicts, ownRules, noise }: PublishedRun): Content {
  const lists = [
    {
      id: 'equivalences',
      table: 'Equivalences',
      title: 'What counts as equivalent',
      lead: `${formatCount(verdicts.equivalent)} records are written differently and mean the same by these rules. A record can need several.`,
      headings: ['Rule', 'Meaning', 'Field'],
      rows: equivalences.map(({ rule, path, count }) => [
        html`<code>${rule}</code>`,
        explainRule(rule) ?? 'a rule of the partner’s own',
        codePath(path),
        formatCount(count),
      ]),
    },
    {
      id: 'own-rules',
      table: 'Own rules',
      title: 'Own rules of the partner',
      headings: ['Rule', 'Field', 'Reason', 'Owner', 'Counts until'],
      rows: ownRules.map(({ name, path, reason, owner, expires, expired, count }) => [
        ...[name, codePath(path), reason, owner],
        html`${formatLongDay(expires)}${expired && html` <strong class="expired">expired</strong>`}`,
        formatCount(count),
      ]),
    },
    {
      id: 'noise',
      table: 'Noise',
      title: 'Noise: V2 against itself',
      lead: 'V2 was read twice. In these fields it differs from itself, so they say nothing of V3.',
      headings: ['Field', 'Kind'],
      rows: noise.differences.map(({ path, kind, count }) => [codePath(path), kind, formatCount(count)]),
    },
  ]
  return lists
    .filter(({ rows }) => rows.length > 0)
    .map(
      ({ id, table, title, lead, headings, rows }) =>
        html`<section aria-labelledby="${id}">
          <h2 id="${id}">${title}</h2>
          ${lead !== undefined && html`<p class="lead">${lead}</p>`} ${listTable(table, headings, rows)}
        </section>`,
    )
}

/** The first rows of a list, with the number of records in the last column. */
function listTable(name: string, headings: readonly string[], rows: readonly (readonly Content[])[]): Markup {
  const more = rows.length - MOST_LISTED
  return html`${scrollTable(name, [...headings, 'Records'], 1, rows.slice(0, MOST_LISTED))}
  ${more > 0 && html`<p class="note">${more} more are in the report as CSV or JSON.</p>`}`
}
