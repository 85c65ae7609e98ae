import { type Actor, sees } from '../../rollout/operators.ts'
import { backOf, parseUnits, orderOf, type Stage, stages as way, unitRule } from '../../rollout/stage.ts'
import { notFound, reasonOf, usageError, type Visit, visiblePartner } from '../access/visit.ts'
import type { PartnerDetails, PartnerStage, Step } from '../ports.ts'
import { auditTable } from './audit.tsx'
import type { Page } from './page.ts'
import { Badge, Facts, type Field, Form, type FormProps, List, PartnerLink, reasonField, Section, table, Time, Trend } from './parts.tsx' // prettier-ignore

export const partners: Page = {
  path: '/partners',
  isLive: true,
  show: async ({ actor }, { stages }) => {
    const shown = (await stages.list()).filter(({ partner }) => sees(actor, partner))
    return {
      title: 'Partners',
      json: { partners: shown },
      body: <Section title="Stages">{stageTable(shown)}</Section>,
    }
  },
}

const HISTORY = 50

export const partner: Page = {
  path: '/partners/:partner',
  show: async (visit, { stages }) => {
    const id = visiblePartner(visit)
    const [details, history] = await Promise.all([
      stages.show(id),
      stages.history({ partner: id, limit: HISTORY }),
    ])
    if (details === undefined) throw notFound('partner')
    const { trend, configuration } = details
    const { role } = visit.actor
    return {
      title: id,
      json: { ...details, history },
      body: (
        <>
          <Section title="Stage">
            <StageFacts details={details} />
          </Section>
          <div class="columns">
            <Section title="Steps">
              {formsOf(details, role).map((form) => (
                <Form visit={visit} {...form} />
              ))}
              {role === 'viewer' && <p class="empty">Your role is viewer, which cannot change the stage.</p>}
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
    const done = await stages.change(visit.actor, id, stepOf(visit))
    return { ...done, to: `/partners/${encodeURIComponent(id)}` }
  },
}

/** Throws `ADP_USAGE` if a field is not valid. */
function stepOf(visit: Visit): Step {
  const { form } = visit
  const kind = form.get('step')
  if (kind === 'back') return { kind, reason: reasonOf(visit) }
  const despite = {
    despiteHold: form.get('despiteHold') !== null,
    despiteAdvice: form.get('despiteAdvice') !== null,
  }
  if (kind === 'approve') return { kind, ...despite, reason: reasonOf(visit) }
  const stage = way.find((one) => one === form.get('stage'))
  if (kind !== 'set' || stage === undefined)
    throw usageError('The form has no valid step. Nothing was done. Send set with a stage, back or approve.')
  const dryRun = form.get('dryRun') !== null
  const reason = dryRun ? (form.get('reason') ?? '') : reasonOf(visit)
  const step = { kind, stage, ...despite, dryRun, reason } as const
  if (stage !== 'canary') return step
  const percent = percentOf(form.get('percent'))
  return { ...step, percent, always: unitsOf(form.get('always')), never: unitsOf(form.get('never')) }
}

function percentOf(text: string | null): number | undefined {
  if (text === null || text.trim() === '') return undefined
  const percent = Number(text)
  if (/^\d{1,3}(?:\.\d{1,6})?$/.test(text.trim()) && percent <= 100) return percent
  throw usageError('The share must be a number from 0 to 100. Nothing was done.')
}

function unitsOf(text: string | null): readonly string[] | undefined {
  if (text === null) return undefined
  const units = parseUnits(text)
  if (units !== undefined) return units
  throw usageError(unitRule)
}

const shareText = ({ percent }: PartnerStage) => (percent === undefined ? undefined : `${percent} %`)

const stageTable = table<PartnerStage>('Partners and their stages', 'There is no partner that you may see.', [
  ['Partner', ({ partner: id }) => <PartnerLink id={id} />],
  ['Stage', ({ stage }) => <Badge tone="plain">{stage}</Badge>],
  ['Share on V3', shareText],
  ['Since (UTC)', ({ sinceMs }) => <Time ms={sinceMs} />],
  ['By', ({ by }) => by ?? 'configuration'],
  ['Next step', (stage) => <NextStep stage={stage} />],
  ['Differences', ({ trend }) => <Trend days={trend} />],
  ['What is missing', ({ advice }) => advice.missing[0]],
])

function NextStep({ stage: { next, advice, pending } }: { readonly stage: PartnerStage }) {
  if (pending !== undefined)
    return <Badge tone="note">{pending.needsApproval ? 'waits for approval' : 'waits for instances'}</Badge>
  if (next === undefined) return <>none</>
  const tone = advice.verdict === 'ready' ? 'good' : advice.verdict === 'blocked' ? 'bad' : 'note'
  return (
    <>
      {next} <Badge tone={tone}>{advice.verdict}</Badge>
    </>
  )
}

interface DetailsProps {
  readonly details: PartnerDetails
}

function StageFacts({ details }: DetailsProps) {
  const { stage, canary, notes } = details
  return (
    <>
      <ol class="way" aria-label="The way from V2 to V3">
        {way.map((one) => (
          <li aria-current={one === stage ? 'step' : undefined}>{one}</li>
        ))}
      </ol>
      <Facts
        of={[
          ['Share on V3', shareText(details)],
          ['Since (UTC)', <Time ms={details.sinceMs} />],
          ['By', details.by ?? 'configuration'],
          ['Reason', details.reason],
          ['Revision', String(details.revision)],
          ['Always on V3', canary.always.length > 0 && canary.always.join(', ')],
          ['Never on V3', canary.never.length > 0 && canary.never.join(', ')],
        ]}
      />
      {notes.map((text) => (
        <p class="notice note">{text}</p>
      ))}
    </>
  )
}

function Evidence({ details }: DetailsProps) {
  const { advice, evidence } = details
  return (
    <Section title="Evidence for the next step">
      <p>
        <NextStep stage={{ ...details, pending: undefined }} />
      </p>
      <List of={advice.missing} />
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

function formsOf(details: PartnerDetails, role: Actor['role']): readonly Omit<FormProps, 'visit'>[] {
  const { stage, pending, next } = details
  const back = backOf(stage)
  const forms: Omit<FormProps, 'visit'>[] = []
  if (orderOf(back) < orderOf(stage) || pending !== undefined)
    forms.push({ ...formOf('back', `Back to ${back}`, [reasonField]), tone: 'danger' })
  if (pending?.needsApproval === true)
    forms.push({
      ...formOf('approve', 'Approve the step', [reasonField, ...despite]),
      children: <p>{pending.text}</p>,
    })
  if (role !== 'operator') return forms
  if (stage === 'canary') forms.push(forwardTo(stage, 'Change the share', details))
  if (next !== undefined && next !== stage) forms.push(forwardTo(next, `Forward to ${next}`, details))
  return forms
}

const formOf = (step: 'back' | 'approve', label: string, fields: readonly Field[]) => ({
  ...{ id: step, label, hidden: { step }, fields },
})

function forwardTo(stage: Stage, label: string, { canary }: PartnerDetails): Omit<FormProps, 'visit'> {
  const { percent, always, never } = canary
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
