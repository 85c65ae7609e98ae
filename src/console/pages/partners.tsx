import { formatCounted } from '../../compare/report/format.ts'
import { readAdviceNote } from '../../rollout/advice-note.ts'
import type { StepCondition } from '../../rollout/condition.ts'
import { mayAct, sees } from '../../rollout/operators.ts'
import { formatSettingShort, type PartnerDocument } from '../../rollout/partner-document.ts'
import { backOf, MAX_REASON, orderOf, parseUnits, type StageSetting, stages as way, type Step, unitRule } from '../../rollout/stage.ts' // prettier-ignore
import { notFound, paramsOf, reasonOf, usageError, type Visit, visiblePartner } from '../access/visit.ts'
import type { PartnerFacts, StageDesk } from '../ports.ts'
import { auditTable } from './audit.tsx'
import type { Page } from './page.ts'
import { Badge, Facts, type Field, Form, Notice, PartnerLink, reasonField, Section, table, Time, Trend } from './parts.tsx' // prettier-ignore

export const partners: Page = {
  path: '/partners',
  isLive: true,
  show: async ({ actor }, { stages }) => {
    const shown = (await stages.list()).filter(({ document }) => sees(actor, document.partner))
    return {
      title: 'Partners',
      json: { partners: shown.map(toJson) },
      body: <Section title="Stages">{stageTable(shown)}</Section>,
    }
  },
}

/** Returns the JSON that `rollout show --json` prints, with the further facts of the page. */
const toJson = ({ document, notes, canary, next, conditions, guard, guardAlarm, trend }: PartnerFacts) => ({
  ...document,
  ...{ notes, canary, next, conditions, guard, guardAlarm, trend },
})

const HISTORY = 50

export const partner: Page = {
  path: '/partners/:partner',
  show: async (visit, { stages }) => {
    const id = visiblePartner(visit)
    const { school } = paramsOf(visit.query, ['school'])
    const [[details], history, side] = await Promise.all([
      stages.list(id),
      stages.history({ partner: id, limit: HISTORY }),
      school === undefined ? undefined : stages.sideOf(id, school),
    ])
    if (details === undefined) throw notFound('partner')
    const { trend, guard } = details
    const configuration = stages.configuration(id)
    return {
      title: id,
      status: `${details.next ? details.document.advice.verdict : details.document.stage} · ${id}`,
      json: { ...toJson(details), configuration, history, side },
      body: (
        <>
          <Section title="Stage">
            <StageFacts details={details} />
          </Section>
          <Section title={titleOf(details)}>
            <Conditions details={details} />
          </Section>
          <div class="columns">
            <Section title="Steps">
              <Steps visit={visit} details={details} preview={await previewOf(visit, details, stages)} />
            </Section>
            <div class="stack">
              <Section title="What the guard sees now">
                <p>{guard ?? 'The guard watches writes at canary, while both sides serve schools.'}</p>
              </Section>
              <Section title="Which side serves a school?">
                <form class="row" aria-label="School">
                  <label for="school">School</label>
                  <input id="school" name="school" value={school} required maxLength={255} />
                  <button class="quiet">Look up</button>
                </form>
                {side && <p role="status">{side.text}</p>}
              </Section>
              <Section title="Differences by day">
                <Trend days={trend} />
                {trend.length > 0 && <a href={`/comparison/live:${encodeURIComponent(id)}`}>What differs</a>}
              </Section>
            </div>
          </div>
          <Section title="History">{auditTable(history)}</Section>
          <details>
            <summary>Configuration, without secrets</summary>
            <pre>{configuration ?? 'The configuration file has no such partner.'}</pre>
          </details>
        </>
      ),
    }
  },
  act: async (visit, { stages }) => {
    const id = visiblePartner(visit)
    const done = await stages.take(visit.actor, id, stepOf(visit))
    return { ...done, to: `/partners/${encodeURIComponent(id)}` }
  },
}

/** Returns the step that a form describes. Throws `ADP_USAGE` if a field is not valid. */
function stepOf(visit: Visit): Step {
  const { form } = visit
  const has = (name: string): boolean => form.get(name) !== null
  const kind = form.get('step')
  const stage = way.find((one) => one === form.get('stage'))
  const dryRun = has('dryRun') && kind !== 'approve'
  const options = {
    ...{ dryRun, despiteHold: has('despiteHold'), despiteAdvice: has('despiteAdvice') },
    // The kill switch needs no reason.
    reason: dryRun ? '' : reasonOf(visit, kind === 'back'),
  }
  if (kind === 'back' || kind === 'approve') return { kind, ...options }
  if (kind !== 'set' || stage === undefined)
    throw usageError('The form has no valid step. Nothing was done. Send set with a stage, back or approve.')
  if (stage !== 'canary') return { kind, stage, ...options }
  const [always, never] = [unitsOf(form.get('always')), unitsOf(form.get('never'))]
  return { kind, stage, ...options, percent: percentOf(form.get('percent')), always, never }
}

function percentOf(text: string | null): number | undefined {
  if (text === null || text.trim() === '') return undefined
  const percent = Number(text)
  if (/^\d{1,3}(?:\.\d{1,6})?$/.test(text.trim()) && percent <= 100) return percent
  throw usageError('The share is not a number from 0 to 100. Nothing was done. Type a number from 0 to 100.')
}

function unitsOf(text: string | null): readonly string[] | undefined {
  if (text === null) return undefined
  const units = parseUnits(text)
  if (units !== undefined) return units
  throw usageError(unitRule)
}

const stageTable = table<PartnerFacts>('Partners and their stages', 'There is no partner that you may see.', [
  ['Partner', ({ document }) => <PartnerLink id={document.partner} />],
  ['Stage', ({ document }) => <Badge tone="plain">{document.stage}</Badge>],
  ['Share on V3', ({ document }) => `${document.percent} %`],
  ['Since', ({ document }) => <Time at={document.since} />],
  ['Next step', (details) => <NextStep details={details} />],
  ['What is missing', ({ document }) => document.advice.missing[0]],
  ['Differences', ({ trend }) => <Trend days={trend} />],
])

const tones = { ready: 'good', blocked: 'bad', inconclusive: 'note', 'not yet': 'note' } as const

export const VerdictBadge = ({ verdict }: Pick<PartnerDocument['advice'], 'verdict'>) => (
  <Badge tone={tones[verdict]}>{verdict}</Badge>
)

interface DetailsProps {
  readonly details: PartnerFacts
}

function NextStep({ details: { document, next } }: DetailsProps) {
  const { pending, advice } = document
  if (pending !== undefined)
    return <Badge tone="note">{pending.needsApproval ? 'waits for approval' : 'waits for instances'}</Badge>
  if (next === undefined) return <>none</>
  return (
    <>
      {nameOf(next)} <VerdictBadge verdict={advice.verdict} />
    </>
  )
}

const nameOf = ({ stage, percent }: Pick<StageSetting, 'stage' | 'percent'>): string =>
  stage === 'canary' ? `canary ${percent} %` : stage

const titleOf = ({ next }: PartnerFacts): string =>
  next === undefined ? 'The last stage' : `Next step: ${nameOf(next)}`

function StageFacts({ details: { document, canary, notes } }: DetailsProps) {
  const { stage, percent, since, by, reason } = document
  const at = stage === 'canary' ? '' : ', once at canary'
  const current = orderOf(stage)
  const wordOf = (order: number) => (order < current ? 'done' : order === current + 1 ? 'next' : undefined)
  return (
    <>
      <ol class="way" aria-label="The way from V2 to V3">
        {way.map((one, order) => (
          <li class={wordOf(order)} aria-current={one === stage ? 'step' : undefined}>
            {one} {order === current ? `${percent} %` : wordOf(order)}
          </li>
        ))}
      </ol>
      <Facts
        of={[
          ['Schools on V3', `${percent} %`],
          ['Since', <Time at={since} />],
          ['By', by ?? 'configuration'],
          ['Reason', readAdviceNote(reason ?? '').reason],
          [`Always on V3${at}`, canary.always.length > 0 && canary.always.join(', ')],
          [`Never on V3${at}`, canary.never.length > 0 && canary.never.join(', ')],
        ]}
      />
      {notes.map((text) => (
        <Notice tone="note" what={text} />
      ))}
    </>
  )
}

const conditionTones = { pass: 'good', fail: 'bad', waiting: 'note' } as const

function Conditions({ details: { document, conditions, next } }: DetailsProps) {
  const { verdict } = document.advice
  const [met = [], unmet = []] = [true, false].map((isMet) =>
    conditions.filter(({ state }) => (state === 'pass') === isMet),
  )
  if (next === undefined) return <p>V3 serves this partner, and no further step exists.</p>
  const failing = unmet.filter(({ state }) => state === 'fail')
  return (
    <>
      <Notice
        tone={tones[verdict]}
        what={
          verdict === 'ready'
            ? `This partner may move on to ${nameOf(next)}: all ${met.length} conditions are met.`
            : `This partner should not move on yet (${verdict}): ${unmet.length} of ${conditions.length} conditions are not met.`
        }
        remedy={
          failing.length > 0
            ? `${formatCounted(failing.length, 'condition')} marked fail: somebody must act.`
            : unmet.length > 0 && 'Time and traffic can meet them. Nobody must act.'
        }
      />
      {unmet.length > 0 &&
        conditionTable('Conditions that are not met')([
          ...failing,
          ...unmet.filter(({ state }) => state !== 'fail'),
        ])}
      {met.length > 0 && (
        <details>
          <summary>{formatCounted(met.length, 'condition')} met</summary>
          {conditionTable('Conditions that are met')(met)}
        </details>
      )}
    </>
  )
}

const conditionTable = (caption: string) =>
  table<StepCondition>(caption, '', [
    ['Condition', ({ name }) => name],
    ['State', ({ state }) => <Badge tone={conditionTones[state]}>{state}</Badge>],
    ['Progress', ({ progress }) => progress],
    ['What is missing', ({ sentence }) => sentence],
  ])

/** Says what would happen if the person took the next step now, or returns `undefined` if the role allows no step. */
async function previewOf({ actor }: Visit, { document, next }: PartnerFacts, stages: StageDesk) {
  if (next === undefined || !mayAct(actor, 'set')) return undefined
  const { text } = await stages.take(actor, document.partner, { kind: 'set', dryRun: true, ...next })
  // The further lines repeat the conditions.
  return text.split('\n')[0]
}

const despite: readonly Field[] = [
  { name: 'despiteHold', type: 'checkbox', label: 'Take the step within the hour after a guard has acted' },
  {
    name: 'despiteAdvice',
    type: 'checkbox',
    label: 'Take the step although the advice does not call it ready',
  },
]

interface StepsProps extends DetailsProps {
  readonly visit: Visit
  readonly preview: string | undefined
}

/** Shows the forms of the steps that are possible at the current stage and that the role of the person allows. */
function Steps({ visit, preview, details: { document, canary, next } }: StepsProps) {
  const { actor } = visit
  const { stage, pending, advice } = document
  const back = backOf(stage)
  const mayGoBack = mayAct(actor, 'back') && (orderOf(back) < orderOf(stage) || pending !== undefined)
  const mayApprove = mayAct(actor, 'approve') && pending?.needsApproval === true
  const maySet = mayAct(actor, 'set')
  const exceptions = advice.verdict === 'ready' ? [] : despite
  if (!mayGoBack && !mayApprove && !maySet)
    return <p class="empty">There is no step that the role {actor.role} may take.</p>
  return (
    <>
      {mayApprove && (
        <Form
          visit={visit}
          id="approve"
          label="Approve the step"
          hidden={{ step: 'approve' }}
          fields={[reasonField, ...despite]}
        >
          <p>{`${pending.by} proposed ${formatSettingShort(pending)}: ${pending.reason}`}</p>
        </Form>
      )}
      {maySet && next && (
        <Form
          {...{ visit, id: next.stage, label: `Move to ${nameOf(next)}`, tone: 'large' }}
          hidden={{ step: 'set', ...hiddenOf(next) }}
          fields={[reasonField, ...exceptions]}
        >
          <p>If you take the step now: {preview}</p>
        </Form>
      )}
      {mayGoBack && (
        <Form
          {...{ visit, id: 'back', label: `Back to ${back}`, tone: 'danger', hidden: { step: 'back' } }}
          fields={[{ ...reasonField, label: 'Reason, if you have one', more: { maxLength: MAX_REASON } }]}
        />
      )}
      {maySet && (stage === 'canary' || next?.stage === 'canary') && (
        <details>
          <summary>Choose the share and the schools</summary>
          <Form
            {...{ visit, id: 'share', label: 'Set the share', hidden: { step: 'set', stage: 'canary' } }}
            fields={[
              ...shareFields(stage === 'canary' ? canary : { ...canary, ...next }),
              reasonField,
              ...exceptions,
            ]}
            beside={
              <button class="quiet" name="dryRun" value="1" formNoValidate>
                Only show what would happen
              </button>
            }
          />
        </details>
      )}
    </>
  )
}

const hiddenOf = ({ stage, percent }: Pick<StageSetting, 'stage' | 'percent'>): Record<string, string> =>
  stage === 'canary' ? { stage, percent: String(percent) } : { stage }

const shareFields = ({ percent, always, never }: PartnerFacts['canary']): readonly Field[] => [
  {
    ...{ name: 'percent', label: 'Percentage of the schools that V3 serves', type: 'number', value: percent },
    more: { min: 0, max: 100, step: 'any' },
  },
  { name: 'always', label: 'Always on V3: schools, separated by commas', value: always.join(', ') },
  { name: 'never', label: 'Never on V3: schools, separated by commas', value: never.join(', ') },
]
