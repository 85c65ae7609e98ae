import { formatCounted } from '../../compare/report/format.ts'
import type { StepCondition } from '../../rollout/condition.ts'
import { mayAct, sees } from '../../rollout/operators.ts'
import { formatSettingShort, type PartnerDocument } from '../../rollout/partner-document.ts'
import { backOf, MAX_REASON, orderOf, parseUnits, type StageSetting, stages as way, type Step, unitRule } from '../../rollout/stage.ts' // prettier-ignore
import { notFound, paramsOf, reasonOf, usageError, type Visit, visiblePartner } from '../access/visit.ts'
import type { PartnerFacts, StageDesk } from '../ports.ts'
import { historyTable } from './audit.tsx'
import type { Page } from './page.ts'
import { Badge, Facts, type Field, Form, Notice, PartnerLink, reasonField, Section, table, Time } from './parts.tsx' // prettier-ignore

export const partners: Page = {
  path: '/partners',
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
const toJson = ({ document, notes, canary, next, conditions, guard, guardAlarm }: PartnerFacts) => ({
  ...document,
  ...{ notes, canary, next, conditions, guard, guardAlarm },
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
          <Section title="Next step">
            <Conditions details={details} />
          </Section>
          <Section title="Steps">
            <Steps visit={visit} details={details} preview={await previewOf(visit, details, stages)} />
          </Section>
          <Section title="What the guard sees now">
            <p>{details.guard ?? 'The guard watches writes at canary, while both sides serve schools.'}</p>
          </Section>
          <Section title="Which side serves a school?">
            <form class="row" aria-label="School">
              <label for="school">School</label>
              <input id="school" name="school" value={school} required maxLength={255} />
              <button class="quiet">Look up</button>
            </form>
            {side && <p role="status">{side.text}</p>}
          </Section>
          <Section title="History">{historyTable(history)}</Section>
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
    // A step back, the kill switch, needs no reason.
    reason: dryRun ? '' : reasonOf(visit, kind === 'back'),
  }
  if (kind === 'back' || kind === 'approve') return { kind, ...options }
  if (kind !== 'set' || stage === undefined)
    throw usageError('The form has no valid step. Nothing was done. Send set with a stage, back or approve.')
  if (stage !== 'canary') return { kind, stage, ...options }
  const percent = form.get('percent') ?? ''
  const [always, never] = [unitsOf(form.get('always')), unitsOf(form.get('never'))]
  return { kind, stage, ...options, percent: percent === '' ? undefined : Number(percent), always, never }
}

function unitsOf(text: string | null): readonly string[] | undefined {
  const units = text === null ? undefined : parseUnits(text)
  if (text !== null && units === undefined) throw usageError(unitRule)
  return units
}

const stageTable = table<PartnerFacts>('Partners and their stages', 'There is no partner that you may see.', [
  ['Partner', ({ document }) => <PartnerLink id={document.partner} />],
  ['Stage', ({ document }) => <Badge tone="plain">{document.stage}</Badge>],
  ['Share on V3', ({ document }) => `${document.percent} %`],
  ['Since', ({ document }) => <Time at={document.since} />],
  ['Next step', ({ next }) => next && nameOf(next)],
  ['Advice', ({ document, next }) => next && <VerdictBadge verdict={document.advice.verdict} />],
  [
    'What is missing',
    ({ document: { pending, advice } }) => (pending ? 'A step is proposed and waits.' : advice.missing[0]),
  ],
])

const tones = { ready: 'good', blocked: 'bad', inconclusive: 'note', 'not yet': 'note' } as const

export const VerdictBadge = ({ verdict }: Pick<PartnerDocument['advice'], 'verdict'>) => (
  <Badge tone={tones[verdict]}>{verdict}</Badge>
)

interface DetailsProps {
  readonly details: PartnerFacts
}

const nameOf = ({ stage, percent }: Pick<StageSetting, 'stage' | 'percent'>): string =>
  stage === 'canary' ? `canary ${percent} %` : stage

function StageFacts({ details: { document, canary, notes } }: DetailsProps) {
  const { stage, percent, since, pending } = document
  // If a step is pending, the last note describes it, and the next section already shows the step.
  const shownNotes = pending === undefined ? notes : notes.slice(0, -1)
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
          ['Since', since !== null && <Time at={since} />],
          ['Always on V3 at canary', canary.always.length > 0 && canary.always.join(', ')],
          ['Never on V3 at canary', canary.never.length > 0 && canary.never.join(', ')],
        ]}
      />
      {shownNotes.map((text) => (
        <Notice tone="note" what={text} />
      ))}
    </>
  )
}

const conditionTones = { pass: 'good', fail: 'bad', waiting: 'note' } as const

function Conditions({ details: { document, conditions, next } }: DetailsProps) {
  if (next === undefined) return <p>V3 serves this partner, and no further step exists.</p>
  const {
    pending,
    advice: { verdict },
  } = document
  const { fail = [], waiting = [], pass = [] } = Object.groupBy(conditions, ({ state }) => state)
  const [may, end] = verdict === 'ready' ? ['may', ''] : ['should not', ` yet: the verdict is "${verdict}"`]
  const remedy =
    fail.length > 0
      ? `${formatCounted(fail.length, 'condition')} marked fail: an operator must act.`
      : waiting.length > 0 && 'No action is needed: more time and traffic can meet the conditions.'
  return (
    <>
      {pending ? (
        <Notice
          tone="note"
          what={`${pending.by} proposed ${formatSettingShort(pending)}: ${pending.reason}`}
          remedy={<Waits {...pending} />}
        />
      ) : (
        <Notice
          {...{ tone: tones[verdict], what: `This partner ${may} move on to ${nameOf(next)}${end}.`, remedy }}
          link={['/comparison', 'What V2 and V3 answer differently']}
        />
      )}
      {conditionTable([...fail, ...waiting])}
      {pass.length > 0 && (
        <details>
          <summary>{formatCounted(pass.length, 'condition')} met</summary>
          {conditionTable(pass)}
        </details>
      )}
    </>
  )
}

const Waits = ({ needsApproval, expires }: NonNullable<PartnerDocument['pending']>) => (
  <>
    The step waits for {needsApproval ? 'the approval of another operator' : 'the writes under way'}. It
    expires at <Time at={expires} />.
  </>
)

const conditionTable = table<StepCondition>('Conditions', 'Every condition is met.', [
  ['Condition', ({ name }) => name],
  ['State', ({ state }) => <Badge tone={conditionTones[state]}>{state}</Badge>],
  ['Progress', ({ progress, sentence, state }) => (state === 'fail' ? sentence : (progress ?? sentence))],
])

/** Says what would happen if the person took the next step now. A step that is not ready needs no dry run, since the advice refuses it. */
async function previewOf({ actor }: Visit, { document, next }: PartnerFacts, stages: StageDesk) {
  if (next === undefined || !mayAct(actor, 'set')) return undefined
  if (document.advice.verdict !== 'ready')
    return 'it is refused, unless you choose to act despite the advice.'
  const { text } = await stages.take(actor, document.partner, { kind: 'set', dryRun: true, ...next })
  return text
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
  const backLabel = orderOf(back) < orderOf(stage) ? `Back to ${back}` : 'Withdraw the step'
  const mayApprove = mayAct(actor, 'approve') && pending?.needsApproval === true
  const maySet = mayAct(actor, 'set') && pending === undefined
  const exceptions = advice.verdict === 'ready' ? [] : despite
  if (!mayGoBack && !mayApprove && !maySet)
    return <p class="empty">There is no step that the role {actor.role} may take.</p>
  return (
    <>
      {mayApprove && (
        <Form
          {...{ id: 'approve', label: 'Approve the step', hidden: { step: 'approve' } }}
          fields={[reasonField, ...despite]}
        />
      )}
      {maySet && next && (
        <Form
          {...{ id: next.stage, label: `Move to ${nameOf(next)}`, tone: 'large' }}
          hidden={{ step: 'set', stage: next.stage, percent: String(next.percent) }}
          fields={[reasonField, ...exceptions]}
        >
          <p>If you take the step now: {preview}</p>
        </Form>
      )}
      {mayGoBack && (
        <Form
          {...{ id: 'back', label: backLabel, tone: 'danger', hidden: { step: 'back' } }}
          fields={[{ ...reasonField, label: 'Reason, if you have one', more: { maxLength: MAX_REASON } }]}
        />
      )}
      {maySet && (stage === 'canary' || next?.stage === 'canary') && (
        <details>
          <summary>Choose the share and the schools</summary>
          <Form
            {...{ id: 'share', label: 'Set the share', hidden: { step: 'set', stage: 'canary' } }}
            fields={[
              ...shareFields(stage === 'canary' ? canary : { ...canary, ...next }),
              reasonField,
              { name: 'dryRun', type: 'checkbox', label: 'Only show what would happen' },
              ...exceptions,
            ]}
          />
        </details>
      )}
    </>
  )
}

const shareFields = ({ percent, always, never }: PartnerFacts['canary']): readonly Field[] => [
  {
    ...{ name: 'percent', label: 'Percentage of the schools that V3 serves', type: 'number', value: percent },
    more: { min: 0, max: 100, step: 'any' },
  },
  { name: 'always', label: 'Always on V3: schools, separated by commas', value: always.join(', ') },
  { name: 'never', label: 'Never on V3: schools, separated by commas', value: never.join(', ') },
]
