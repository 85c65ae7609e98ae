import { type Actor, mayAct, sees } from '../../rollout/operators.ts'
import { formatSettingShort, type PartnerDocument } from '../../rollout/partner-document.ts'
import { backOf, nextOf, orderOf, parseUnits, type Stage, stages as way, type Step, unitRule } from '../../rollout/stage.ts' // prettier-ignore
import { notFound, reasonOf, usageError, type Visit, visiblePartner } from '../access/visit.ts'
import type { PartnerFacts } from '../ports.ts'
import { auditTable } from './audit.tsx'
import type { Page } from './page.ts'
import { Badge, Facts, type Field, Form, type FormProps, List, PartnerLink, reasonField, Section, table, Time, Trend } from './parts.tsx' // prettier-ignore

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
const toJson = ({ document, notes, canary, evidence, guardAlarm, trend }: PartnerFacts) => ({
  ...document,
  ...{ notes, canary, evidence, guardAlarm, trend },
})

const HISTORY = 50

export const partner: Page = {
  path: '/partners/:partner',
  show: async (visit, { stages }) => {
    const id = visiblePartner(visit)
    const [[details], history] = await Promise.all([
      stages.list(id),
      stages.history({ partner: id, limit: HISTORY }),
    ])
    if (details === undefined) throw notFound('partner')
    const { trend } = details
    const configuration = stages.configuration(id)
    const forms = formsOf(details, visit.actor)
    return {
      title: id,
      json: { ...toJson(details), configuration, history },
      body: (
        <>
          <Section title="Stage">
            <StageFacts details={details} />
          </Section>
          <div class="columns">
            <Section title="Steps">
              {forms.map((form) => (
                <Form visit={visit} {...form} />
              ))}
              {forms.length === 0 && (
                <p class="empty">There is no step that the role {visit.actor.role} may take.</p>
              )}
            </Section>
            <div class="stack">
              <Evidence details={details} />
              <Section title="Differences by day">
                <Trend days={trend} />
                {trend.length > 0 && <a href={`/comparison/live:${encodeURIComponent(id)}`}>What differs</a>}
              </Section>
            </div>
          </div>
          <Section title="History">{auditTable(history)}</Section>
          <Section title="Configuration, without secrets">
            <pre>{configuration ?? 'The configuration file has no such partner.'}</pre>
          </Section>
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
    reason: dryRun ? '' : reasonOf(visit),
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
  ['By', ({ document }) => document.by ?? 'configuration'],
  ['Next step', ({ document }) => <NextStep of={document} />],
  ['Differences', ({ trend }) => <Trend days={trend} />],
  ['What is missing', ({ document }) => document.advice.missing[0]],
])

const tones = { ready: 'good', blocked: 'bad', inconclusive: 'note', 'not yet': 'note' } as const

function NextStep({ of: { stage, pending, advice } }: { readonly of: PartnerDocument }) {
  const next = nextOf(stage)
  if (pending !== undefined)
    return <Badge tone="note">{pending.needsApproval ? 'waits for approval' : 'waits for instances'}</Badge>
  if (next === undefined) return <>none</>
  return (
    <>
      {next} <Badge tone={tones[advice.verdict]}>{advice.verdict}</Badge>
    </>
  )
}

interface DetailsProps {
  readonly details: PartnerFacts
}

function StageFacts({ details: { document, canary, notes } }: DetailsProps) {
  const { stage, percent, since, by, reason, revision } = document
  const at = stage === 'canary' ? '' : ', once at canary'
  return (
    <>
      <ol class="way" aria-label="The way from V2 to V3">
        {way.map((one) => (
          <li aria-current={one === stage ? 'step' : undefined}>{one}</li>
        ))}
      </ol>
      <Facts
        of={[
          ['Share on V3', `${percent} %`],
          ['Since', <Time at={since} />],
          ['By', by ?? 'configuration'],
          ['Reason', reason],
          ['Revision', String(revision)],
          [`Always on V3${at}`, canary.always.length > 0 && canary.always.join(', ')],
          [`Never on V3${at}`, canary.never.length > 0 && canary.never.join(', ')],
        ]}
      />
      {notes.map((text) => (
        <p class="notice note">{text}</p>
      ))}
    </>
  )
}

function Evidence({ details: { document, evidence } }: DetailsProps) {
  return (
    <Section title="Evidence for the next step">
      <p>
        <NextStep of={{ ...document, pending: undefined }} />
      </p>
      <List of={document.advice.missing} />
      <List of={evidence} />
    </Section>
  )
}

const despite: readonly Field[] = [
  { name: 'despiteHold', type: 'checkbox', label: 'Take the step within the hour after a guard has acted' },
  {
    name: 'despiteAdvice',
    type: 'checkbox',
    label: 'Take the step although the advice does not call it ready',
  },
]

/** Returns the forms for the steps that are possible at the current stage and that the role of the person allows. */
function formsOf({ document, canary }: PartnerFacts, actor: Actor): readonly Omit<FormProps, 'visit'>[] {
  const { stage, pending } = document
  const next = nextOf(stage)
  const back = backOf(stage)
  const forms: Omit<FormProps, 'visit'>[] = []
  if (mayAct(actor, 'back') && (orderOf(back) < orderOf(stage) || pending !== undefined))
    forms.push({ ...formOf('back', `Back to ${back}`, [reasonField]), tone: 'danger' })
  if (mayAct(actor, 'approve') && pending?.needsApproval === true) {
    const { by, reason } = pending
    forms.push({
      ...formOf('approve', 'Approve the step', [reasonField, ...despite]),
      children: <p>{`${by} proposed ${formatSettingShort(pending)}: ${reason}`}</p>,
    })
  }
  if (!mayAct(actor, 'set')) return forms
  if (stage === 'canary') forms.push(forwardTo(stage, 'Change the share', canary))
  if (next !== undefined) forms.push(forwardTo(next, `Forward to ${next}`, canary))
  return forms
}

const formOf = (step: 'back' | 'approve', label: string, fields: readonly Field[]) => ({
  ...{ id: step, label, hidden: { step }, fields },
})

function forwardTo(
  stage: Stage,
  label: string,
  { percent, always, never }: PartnerFacts['canary'],
): Omit<FormProps, 'visit'> {
  const share: readonly Field[] = [
    {
      ...{
        name: 'percent',
        label: 'Percentage of the schools that V3 serves',
        type: 'number',
        value: percent,
      },
      more: { min: 0, max: 100, step: 'any' },
    },
    { name: 'always', label: 'Always on V3: schools, separated by commas', value: always.join(', ') },
    { name: 'never', label: 'Never on V3: schools, separated by commas', value: never.join(', ') },
  ]
  const look = (
    <button class="quiet" name="dryRun" value="1" formNoValidate>
      Only show what would happen
    </button>
  )
  const fields = [...(stage === 'canary' ? share : []), reasonField, ...despite]
  return { id: stage, label, hidden: { step: 'set', stage }, fields, beside: look }
}
