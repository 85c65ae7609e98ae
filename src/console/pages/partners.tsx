import { sees } from '../../rollout/operators.ts'
import { backOf, placeOf, type Stage, stages as allStages } from '../../rollout/stage.ts'
import { notFound, reasonOf, usageError, type Visit, visiblePartner } from '../access/visit.ts'
import type { PartnerDetails, PartnerStage, Step } from '../ports.ts'
import { auditTable } from './audit.tsx'
import type { Page } from './page.ts'
import { Badge, Facts, type Field, Form, List, PartnerLink, reasonField, Section, table, Time } from './parts.tsx' // prettier-ignore
import { Trend, trendTable } from './trend.tsx'

/** All partners with their stages. */
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
const TREND_DAYS = 30

/** One partner: where it is, what speaks for its next step, and the steps. */
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
    return {
      title: id,
      json: { ...details, history },
      body: (
        <>
          <Section title="Stage">
            <StageFacts details={details} />
          </Section>
          <div class="columns">
            <Steps visit={visit} details={details} />
            <div class="stack">
              <Evidence details={details} />
              <Section title="Differences by day">
                <Trend days={trend} />
                {trend.length > 0 && <a href={`/comparison/live:${encodeURIComponent(id)}`}>What differs</a>}
                <details>
                  <summary>Figures by day</summary>
                  {trendTable(trend.slice(-TREND_DAYS).reverse())}
                </details>
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

/** The step that a form asks for. Error: `ADP_USAGE`. */
function stepOf(visit: Visit): Step {
  const { form } = visit
  const kind = form.get('step')
  if (kind === 'back') return { kind, reason: reasonOf(visit) }
  const despiteHold = form.get('despiteHold') !== null
  if (kind === 'approve') return { kind, despiteHold, reason: reasonOf(visit) }
  const stage = allStages.find((one) => one === form.get('stage'))
  if (kind !== 'set' || stage === undefined)
    throw usageError('The step is set with a stage, back or approve.')
  const dryRun = form.get('dryRun') !== null
  const reason = dryRun ? (form.get('reason') ?? '') : reasonOf(visit)
  const step = { kind, stage, despiteHold, dryRun, reason } as const
  if (stage !== 'canary') return step
  const percent = percentOf(form.get('percent'))
  return { ...step, percent, always: unitsOf(form.get('always')), never: unitsOf(form.get('never')) }
}

function percentOf(text: string | null): number | undefined {
  if (text === null || text.trim() === '') return undefined
  const percent = Number(text)
  if (/^\d{1,3}(?:\.\d{1,6})?$/.test(text.trim()) && percent <= 100) return percent
  throw usageError('A share is a number from 0 to 100.')
}

const MAX_UNIT = 255

function unitsOf(text: string | null): readonly string[] | undefined {
  if (text === null) return undefined
  const units = text.split(/[,\n]/).flatMap((unit) => (unit.trim() === '' ? [] : [unit.trim()]))
  if (units.every((unit) => unit.length <= MAX_UNIT)) return [...new Set(units)]
  throw usageError(`Units are names of 1 to ${MAX_UNIT} characters with commas between them.`)
}

const shareText = ({ percent }: PartnerStage) => percent !== undefined && `${percent} %`

const stageTable = table<PartnerStage>('Partners and their stages', 'There is no partner that you may see.', [
  ['Partner', ({ partner: id }) => <PartnerLink id={id} />],
  [
    'Stage',
    ({ stage }) => (stage === 'damaged' ? <Badge tone="bad">damaged</Badge> : <strong>{stage}</strong>),
  ],
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
  if (next === undefined) return <>–</>
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
        {allStages.map((one) => (
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
  const { next, advice, evidence } = details
  return (
    <Section title="Evidence for the next step">
      <p>
        {next === undefined ? (
          'There is no next step.'
        ) : (
          <NextStep stage={{ ...details, pending: undefined }} />
        )}
      </p>
      {advice.missing.length > 0 && <List of={advice.missing} />}
      {evidence.length > 0 && (
        <div class="soft">
          <List of={evidence} />
        </div>
      )}
    </Section>
  )
}

interface StepsProps extends DetailsProps {
  readonly visit: Visit
}

/** The buttons of the steps that the role allows. */
function Steps({ visit, details }: StepsProps) {
  const { role } = visit.actor
  const { stage, pending, next } = details
  const back = stage === 'damaged' ? 'shadow' : backOf(stage)
  const canGoBack = stage === 'damaged' || placeOf(back) < placeOf(stage) || pending !== undefined
  const forward = role === 'operator' && stage !== 'damaged' ? [stage === 'canary' && stage, next] : []
  if (role === 'viewer')
    return (
      <Section title="Steps">
        <p class="empty">Your role is viewer: others change the stage.</p>
      </Section>
    )
  return (
    <Section title="Steps">
      {canGoBack && (
        <Form
          visit={visit}
          id="back"
          label={`Back to ${back}`}
          tone="danger"
          hidden={{ step: 'back' }}
          fields={[reasonField]}
        />
      )}
      {pending?.needsApproval === true && (
        <Form
          visit={visit}
          id="approve"
          label="Approve the step"
          hidden={{ step: 'approve' }}
          fields={[reasonField, despiteHold]}
        >
          <p>{pending.text}</p>
        </Form>
      )}
      {[...new Set(forward)].map((to) => to && <Forward visit={visit} details={details} to={to} />)}
    </Section>
  )
}

const despiteHold: Field = {
  ...{ name: 'despiteHold', type: 'checkbox', label: 'Also within the hour after a guard has acted' },
}

interface ForwardProps extends StepsProps {
  readonly to: Stage
}

function Forward({ visit, details: { stage, canary }, to }: ForwardProps) {
  const units = { always: canary.always.join(', '), never: canary.never.join(', ') }
  const percent = { name: 'percent', type: 'number', value: canary.percent }
  const share: readonly Field[] = [
    {
      ...percent,
      label: 'Percentage of the schools that V3 serves',
      more: { min: 0, max: 100, step: 'any' },
    },
    { name: 'always', label: 'Always on V3: schools, with commas', value: units.always },
    { name: 'never', label: 'Never on V3: schools, with commas', value: units.never },
  ]
  const look = (
    <button class="quiet" name="dryRun" value="1" formNoValidate>
      Only say what would happen
    </button>
  )
  return (
    <Form
      visit={visit}
      id={to}
      label={to === stage ? 'Change the share' : `Forward to ${to}`}
      hidden={{ step: 'set', stage: to }}
      fields={[...(to === 'canary' ? share : []), reasonField, despiteHold]}
      beside={look}
    />
  )
}
