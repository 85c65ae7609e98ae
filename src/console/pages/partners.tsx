import { sees } from '../../rollout/operators.ts'
import { backOf, placeOf, type Stage, stages as allStages } from '../../rollout/stage.ts'
import { AdapterError } from '../../errors.ts'
import { notFound, reasonOf, type Visit, visiblePartner } from '../access/visit.ts'
import type { PartnerDetails, PartnerStage, Step } from '../ports.ts'
import { History } from './audit.tsx'
import type { Page } from './page.ts'
import { Badge, Facts, Form, Live, PartnerLink, Reason, Section, Table, Time, type Tone } from './parts.tsx'
import { Trend, TrendTable } from './trend.tsx'

/** All partners with their stages. */
export const partners: Page = {
  path: '/partners',
  show: async ({ actor }, { stages }) => {
    const shown = (await stages.list()).filter(({ partner }) => sees(actor, partner))
    return {
      title: 'Partners',
      json: { partners: shown },
      body: (
        <Live id="partners" of={shown}>
          <Stages partners={shown} />
        </Live>
      ),
    }
  },
}

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
    return {
      title: id,
      json: { ...details, history },
      body: (
        <>
          <StageFacts details={details} />
          <div class="columns">
            <Steps visit={visit} details={details} />
            <div class="stack">
              <Evidence details={details} />
              <Differences details={details} />
            </div>
          </div>
          <Section title="History">
            <History entries={history} />
          </Section>
          <Section title="Configuration">
            {details.configuration === undefined ? (
              <p class="empty">The configuration file has no such partner.</p>
            ) : (
              <pre tabIndex={0} role="region" aria-label="Configuration, without secrets">
                {details.configuration}
              </pre>
            )}
          </Section>
        </>
      ),
    }
  },
  act: async (visit, { stages }) => {
    const id = visiblePartner(visit)
    const { outcome, message, document } = await stages.change(visit.actor, id, stepOf(visit))
    return {
      isDone: outcome !== 'refused',
      text: message,
      to: `/partners/${encodeURIComponent(id)}`,
      json: document,
    }
  },
}

const HISTORY = 50
const TREND_DAYS = 30

/** The step that a form asks for. Error: `ADP_USAGE`. */
function stepOf(visit: Visit): Step {
  const { form } = visit
  const kind = form.get('step')
  if (kind === 'back') return { kind, reason: reasonOf(visit) }
  const despiteHold = form.get('despiteHold') !== null
  if (kind === 'approve') return { kind, despiteHold, reason: reasonOf(visit) }
  const stage = allStages.find((one) => one === form.get('stage'))
  if (kind !== 'set' || stage === undefined)
    throw new AdapterError('ADP_USAGE', 'The step is set with a stage, back or approve.')
  const dryRun = form.get('dryRun') !== null
  const reason = dryRun ? (form.get('reason') ?? '') : reasonOf(visit)
  if (stage !== 'canary') return { kind, stage, despiteHold, dryRun, reason }
  const percent = percentOf(form.get('percent'))
  const [always, never] = [unitsOf(form.get('always')), unitsOf(form.get('never'))]
  return { kind, stage, percent, always, never, despiteHold, dryRun, reason }
}

function percentOf(text: string | null): number | undefined {
  if (text === null || text.trim() === '') return undefined
  const percent = Number(text)
  if (/^\d{1,3}(?:\.\d{1,6})?$/.test(text.trim()) && percent <= 100) return percent
  throw new AdapterError('ADP_USAGE', 'A share is a number from 0 to 100.')
}

const MAX_UNIT = 255

function unitsOf(text: string | null): readonly string[] | undefined {
  if (text === null) return undefined
  const units = text.split(/[,\n]/).flatMap((unit) => (unit.trim() === '' ? [] : [unit.trim()]))
  if (units.every((unit) => unit.length <= MAX_UNIT)) return [...new Set(units)]
  throw new AdapterError(
    'ADP_USAGE',
    `Units are names of 1 to ${MAX_UNIT} characters with commas between them.`,
  )
}

const verdictTones: Readonly<Record<string, Tone>> = { ready: 'good', blocked: 'bad' }

function Stages({ partners: shown }: { readonly partners: readonly PartnerStage[] }) {
  return (
    <Table
      caption="Partners and their stages"
      rows={shown}
      columns={[
        ['Partner', ({ partner: id }) => <PartnerLink id={id} />],
        ['Stage', ({ stage }) => <StageName stage={stage} />],
        ['Share on V3', ({ percent }) => (percent === undefined ? '–' : `${percent} %`), 'number'],
        ['Since (UTC)', ({ sinceMs }) => <Time ms={sinceMs} />],
        ['By', ({ by }) => by ?? 'configuration'],
        [
          'Next step',
          ({ next, advice, pending }) =>
            pending !== undefined ? (
              <Badge tone="note">
                {pending.needsApproval ? 'waits for approval' : 'waits for instances'}
              </Badge>
            ) : next === undefined ? (
              '–'
            ) : (
              <>
                {next} <Badge tone={verdictTones[advice.verdict] ?? 'note'}>{advice.verdict}</Badge>
              </>
            ),
        ],
        ['Differences', ({ trend }) => <Trend days={trend} />],
        ['What is missing', ({ advice }) => advice.missing[0] ?? ''],
      ]}
      empty="There is no partner that you may see."
    />
  )
}

function StageName({ stage }: { readonly stage: PartnerStage['stage'] }) {
  return stage === 'damaged' ? <Badge tone="bad">damaged</Badge> : <strong>{stage}</strong>
}

function StageFacts({ details }: { readonly details: PartnerDetails }) {
  const { stage, percent, sinceMs, by, reason, revision, notes, canary } = details
  return (
    <section aria-label="Stage">
      <ol class="way" aria-label="The way from V2 to V3">
        {allStages.map((one) => (
          <li aria-current={one === stage ? 'step' : undefined}>{one}</li>
        ))}
      </ol>
      <Facts
        of={[
          ['Share on V3', percent === undefined ? '–' : `${percent} %`],
          ['Since (UTC)', <Time ms={sinceMs} />],
          ['By', by ?? 'configuration'],
          ['Reason', reason === undefined || reason === '' ? '–' : reason],
          ['Revision', revision],
          ['Always on V3', canary.always.length > 0 && canary.always.join(', ')],
          ['Never on V3', canary.never.length > 0 && canary.never.join(', ')],
        ]}
      />
      {notes.map((text) => (
        <p class="notice note">{text}</p>
      ))}
    </section>
  )
}

function Evidence({ details: { next, advice, evidence } }: { readonly details: PartnerDetails }) {
  return (
    <Section title={`Evidence for ${next ?? 'a next step'}`}>
      {next === undefined ? (
        <p class="empty">There is no next step.</p>
      ) : (
        <p>
          Advice on {next}: <Badge tone={verdictTones[advice.verdict] ?? 'note'}>{advice.verdict}</Badge>
        </p>
      )}
      {advice.missing.length > 0 && (
        <ul class="list">
          {advice.missing.map((sentence) => (
            <li>{sentence}</li>
          ))}
        </ul>
      )}
      {evidence.length > 0 && (
        <ul class="list soft" aria-label="Figures">
          {evidence.map((fact) => (
            <li>{fact}</li>
          ))}
        </ul>
      )}
    </Section>
  )
}

function Differences({ details: { partner: id, trend } }: { readonly details: PartnerDetails }) {
  return (
    <Section title="Differences by day">
      <p>
        <Trend days={trend} />
      </p>
      {trend.length > 0 && <a href={`/comparison/live:${encodeURIComponent(id)}`}>What differs</a>}
      <details>
        <summary>Figures by day</summary>
        <TrendTable days={trend.slice(-TREND_DAYS)} />
      </details>
    </Section>
  )
}

/** The buttons of the steps that the role allows. */
function Steps({ visit, details }: { readonly visit: Visit; readonly details: PartnerDetails }) {
  const { role } = visit.actor
  const { partner: id, stage, pending, next } = details
  const action = `/partners/${encodeURIComponent(id)}`
  if (role === 'viewer')
    return (
      <Section title="Steps">
        <p class="empty">Your role is viewer: others change the stage.</p>
      </Section>
    )
  const back = stage === 'damaged' ? 'shadow' : backOf(stage)
  const canGoBack = stage === 'damaged' || placeOf(back) < placeOf(stage) || pending !== undefined
  return (
    <Section title="Steps">
      {canGoBack && (
        <Form visit={visit} action={action} label={`Back to ${back}`}>
          <input type="hidden" name="step" value="back" />
          <h3>Back to {back}, at once</h3>
          <Reason id="back-reason" />
          <button class="danger">Back to {back}</button>
        </Form>
      )}
      {pending?.needsApproval === true && (
        <Form visit={visit} action={action} label="Approve the step">
          <input type="hidden" name="step" value="approve" />
          <h3>Approve</h3>
          <p>{pending.text}</p>
          <Reason id="approve-reason" />
          <DespiteHold id="approve-hold" />
          <button>Approve</button>
        </Form>
      )}
      {role === 'operator' && stage !== 'damaged' && (
        <>
          {stage === 'canary' && <Forward visit={visit} action={action} to="canary" details={details} />}
          {next !== undefined && next !== stage && (
            <Forward visit={visit} action={action} to={next} details={details} />
          )}
        </>
      )}
    </Section>
  )
}

interface ForwardProps {
  readonly visit: Visit
  readonly action: string
  readonly to: Stage
  readonly details: PartnerDetails
}

function Forward({ visit, action, to, details: { stage, canary } }: ForwardProps) {
  const isShare = to === stage
  const name = isShare ? 'Change the share' : `Forward to ${to}`
  const id = (field: string): string => `${to}-${field}`
  return (
    <Form visit={visit} action={action} label={name}>
      <input type="hidden" name="step" value="set" />
      <input type="hidden" name="stage" value={to} />
      <h3>{name}</h3>
      {to === 'canary' && (
        <>
          <p class="field">
            <label for={id('percent')}>Percentage of the schools that V3 serves</label>
            <input
              id={id('percent')}
              name="percent"
              type="number"
              min={0}
              max={100}
              step="any"
              value={canary.percent}
            />
          </p>
          <p class="field">
            <label for={id('always')}>Always on V3: schools, with commas</label>
            <input id={id('always')} name="always" value={canary.always.join(', ')} autocomplete="off" />
          </p>
          <p class="field">
            <label for={id('never')}>Never on V3: schools, with commas</label>
            <input id={id('never')} name="never" value={canary.never.join(', ')} autocomplete="off" />
          </p>
        </>
      )}
      <Reason id={id('reason')} />
      <DespiteHold id={id('hold')} />
      <p class="row">
        <button>{name}</button>
        <button class="quiet" name="dryRun" value="1" formNoValidate>
          Only say what would happen
        </button>
      </p>
    </Form>
  )
}

function DespiteHold({ id }: { readonly id: string }) {
  return (
    <p class="check">
      <input id={id} name="despiteHold" type="checkbox" value="1" />
      <label for={id}>Also within the hour after a guard has acted</label>
    </p>
  )
}
