import { formatCell, formatCount, formatDay, formatDuration, formatInstant, formatShare } from '../format.ts'
import { headlineOf } from '../headline.ts'
import type { PublishedRun } from '../published-run.ts'
import { chartVerdicts } from './chart-verdicts.ts'
import { type Content, html, type Markup } from './markup.ts'

const signs = {
  ready: html`<path d="M13 25l7 7 15-16" />`,
  differs: html`<path d="M13 19h22M13 29h22M31 11L17 37" />`,
  inconclusive: html`<path d="M17.5 19a6.5 6.5 0 1 1 9.6 5.7c-2 1.1-3.1 2.4-3.1 4.3M24 34.6v.4" />`,
}

const kinds = {
  reads: 'both services were read',
  recording: 'recorded exchanges',
  live: 'live traffic of a running adapter',
}

/** The outcome, in one sentence, and the figures behind it. */
export function sectionHeadline(run: PublishedRun): Markup {
  const { title, sentence, doubts } = headlineOf(run)
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
        ${
          run.partner !== null &&
          html`<div>
            <dt>Partner</dt>
            <dd>${run.partner}</dd>
          </div>`
        }
        <div>
          <dt>Records of</dt>
          <dd>${formatDay(run.from)} – ${formatDay(run.to)}</dd>
        </div>
        <div>
          <dt>Run</dt>
          <dd>${run.run}</dd>
        </div>
        <div>
          <dt>Source</dt>
          <dd>${kinds[run.kind]}</dd>
        </div>
        <div>
          <dt>Ended</dt>
          <dd>
            ${formatInstant(run.endedAt)}, after
            ${formatDuration(Date.parse(run.endedAt) - Date.parse(run.startedAt))}
          </dd>
        </div>
      </dl>
    </header>
    <section aria-labelledby="verdicts">
      <h2 id="verdicts">Verdicts</h2>
      <p class="lead">Records compared: ${formatCount(run.compared)}, each with exactly one verdict.</p>
      ${chartVerdicts(run)}
    </section>
    ${sectionTrust(run)}`
}

type Level = 'good' | 'note' | 'bad'
const levels: Readonly<Record<Level, string>> = { good: 'Good', note: 'Note', bad: 'Attention' }

/** How far the verdicts can be trusted. */
function sectionTrust(run: PublishedRun): Markup {
  const row = (level: Level, name: string, value: Content, text: Content): Markup =>
    html`<li class="${level}">
      <span class="mark"><span class="hidden">${levels[level]}: </span></span>
      <div>
        <h3>${name}</h3>
        <p class="value">${value}</p>
        <p class="note">${text}</p>
      </div>
    </li>`
  return html`<section aria-labelledby="trust">
    <h2 id="trust">How far to trust it</h2>
    <ul class="trust">
      ${completeness(run, row)}${noise(run, row)}${ownRules(run, row)}${askedAgain(run, row)}
    </ul>
  </section>`
}

type Row = (level: Level, name: string, value: Content, text: Content) => Markup

function completeness(
  { complete, offered, compared, dropped, skipped, doubts }: PublishedRun,
  row: Row,
): Markup {
  const share = formatShare(compared, offered)
  const left = html`${formatCell(compared)} of ${formatCell(offered)} offered records compared;
  ${formatCell(dropped)} dropped, ${formatCell(skipped)} skipped.`
  const isEnough = complete && !doubts.includes('tooFewCompared') && compared !== 0
  return row(
    isEnough ? 'good' : 'bad',
    'Completeness',
    share ?? (compared === 0 ? 'nothing' : 'nearly all'),
    html`${left} ${complete ? 'The run came to its end.' : 'The run was stopped before its end.'}`,
  )
}

const noiseAdvice: Readonly<Record<PublishedRun['kind'], string>> = {
  reads: 'Run again with --noise to tell.',
  recording: 'compare run --noise reads V2 twice.',
  live: 'compare run --noise reads V2 twice.',
}

function noise({ noise: { measured, records }, outcome, kind }: PublishedRun, row: Row): Markup {
  if (!measured)
    return row(
      outcome === 'differs' ? 'bad' : 'note',
      'Noise of V2',
      'not measured',
      `V2 was read once: a difference may be one that V2 has with itself. ${noiseAdvice[kind]}`,
    )
  return row(
    'good',
    'Noise of V2',
    records === 0 ? 'none' : formatCell(records),
    records === 0
      ? 'V2 was read twice and agreed with itself.'
      : 'records in which V2 differs from itself. These fields do not count as differences.',
  )
}

function ownRules({ ownRules: rules }: PublishedRun, row: Row): Markup {
  const expired = rules.filter((rule) => rule.expired)
  if (rules.length === 0)
    return row('good', 'Own rules', 'none', 'Only the built-in rules made records equivalent.')
  return row(
    expired.length > 0 ? 'bad' : 'note',
    'Own rules',
    expired.length === 0 ? `${rules.length}` : `${expired.length} of ${rules.length} expired`,
    expired.length === 0
      ? 'Differences that the partner has accepted, each with an owner and an end; listed below.'
      : 'What expired rules had accepted counts as different again.',
  )
}

function askedAgain({ askedAgain: count }: PublishedRun, row: Row): Markup {
  return row(
    'good',
    'Asked again',
    formatCell(count),
    count === 0
      ? 'No record had to be read again.'
      : 'records were read again before they were judged, since they seemed to differ or had changed meanwhile.',
  )
}
