import { formatCounted } from '../../compare/report/format.ts'
import { expectOperator, notFound, usageError, type Visit } from '../access/visit.ts'
import type { ConsolePorts, SandboxState } from '../ports.ts'
import type { Page } from './page.ts'
import { Badge, Facts, Id, Section, table, Time, Token } from './parts.tsx'

/** A choice of faults for the sandbox. The first choice has no faults. */
type Switch = readonly [name: string, label: string, effect: string, ...faults: object[]]

const onV3 = { face: 'V3' }
const lostAnswers = { kind: 'reset', apply: true, method: 'POST', ...onV3 }
const refused = { kind: 'status', status: 503, ...onV3 }

const switches: readonly Switch[] = [
  ['off', 'No fault', 'V3 works normally.'],
  ['lost', 'Replies to writes are lost', 'V3 applies each mark, and the connection breaks before the response. Reads work, so the adapter reads the records back and confirms them.', lostAnswers],
  ['blind', 'Replies to writes are lost, and reads fail', 'V3 applies each mark, and the connection breaks before the response. Reads get 503, so records stay unknown until you switch the fault off and the adapter reads them back.', lostAnswers, { ...refused, method: 'GET' }],
  ['down', 'V3 is out of service', 'Every call gets 503. V3 applies nothing, and clients are told so.', refused],
  ['throttled', 'V3 limits the rate of calls', 'Every second call gets 429.', { kind: 'rateLimit', retryAfterSeconds: 1, probability: 0.5, ...onV3 }],
  ['slow', 'V3 is slow', 'Each call takes 3 s longer.', { kind: 'latency', ms: 3_000, ...onV3 }],
] // prettier-ignore

const SHOWN = 50

export const sandbox: Page = {
  path: '/sandbox',
  isLive: true,
  show: async (visit, ports) => {
    const { effects: accepted, faults, school } = await sandboxOf(visit, ports).read()
    const newest = accepted.toReversed().slice(0, SHOWN)
    const { codes, learners, events } = school
    const samples = codes.map((code, at) => ({ ...code, learner: learners[at], event: events[at] }))
    return {
      title: 'Sandbox',
      json: { faults, school, effects: newest },
      body: (
        <>
          <Switches visit={visit} set={faults} />
          <Section title="Accepted marks">
            <p class="soft">
              The sandbox has accepted {formatCounted(accepted.length, 'mark')}; the newest {SHOWN} are shown.
              Its learners are not real.
            </p>
            {effectTable(newest)}
          </Section>
          <Section title="School">
            <Facts
              of={[
                ['Learners', learners.length],
                ['Events', events.length],
                ['From', <Time at={Date.parse(school.from)} />],
                ['Before', <Time at={Date.parse(school.to)} />],
              ]}
            />
            {sampleTable(samples)}
          </Section>
        </>
      ),
    }
  },
  act: async (visit, ports) => {
    expectOperator(visit)
    const own = sandboxOf(visit, ports)
    const wanted = switches.find(([name]) => name === visit.form.get('switch'))
    if (wanted === undefined)
      throw usageError('The fault is not known. Nothing was changed. Choose a fault from the list.')
    const [name, label, , ...faults] = wanted
    const text = `Faults: ${label}.`
    await ports.stages.recordAction('sandbox', visit.actor.name, text)
    await own.setFaults(faults)
    return { isDone: true, text, to: '/sandbox', json: { switch: name } }
  },
}

/** Returns the sandbox. Throws `ADP_NOT_FOUND` if no sandbox runs beside the adapter, or if the person may not see all partners. */
function sandboxOf({ actor }: Visit, { sandbox: own }: ConsolePorts): NonNullable<ConsolePorts['sandbox']> {
  if (own === undefined || actor.partners !== undefined) throw notFound('page')
  return own
}

/** Returns true if `shown` contains every member of `wanted`. Further members of `shown` have their default values. */
function has(shown: unknown, wanted: unknown): boolean {
  if (typeof wanted !== 'object' || wanted === null) return shown === wanted
  if (typeof shown !== 'object' || shown === null) return false
  const isWhole = !Array.isArray(wanted) || (Array.isArray(shown) && shown.length === wanted.length)
  return isWhole && Object.entries(wanted).every(([name, one]) => has(Reflect.get(shown, name), one))
}

interface SwitchesProps {
  readonly visit: Visit
  readonly set: unknown
}

function Switches({ visit, set }: SwitchesProps) {
  const on = switches.find(([, , , ...faults]) => has(set, faults))
  const isOperator = visit.actor.role === 'operator'
  const rows = switches.map(([name, label, effect]) => (
    <div class="switch">
      <p class="row">
        <button name="switch" value={name} disabled={!isOperator} aria-describedby={`${name}-effect`}>
          {label}
        </button>
        {on?.[0] === name && <Badge tone={name === 'off' ? 'good' : 'note'}>on</Badge>}
      </p>
      <p class="soft" id={`${name}-effect`}>
        {effect}
      </p>
    </div>
  ))
  return (
    <Section title="Faults">
      {on === undefined && <p class="notice note">Other faults are set by a control route.</p>}
      <form method="post" class="act" aria-label="Faults">
        <Token visit={visit} />
        {rows}
      </form>
    </Section>
  )
}

const effectTable = table<SandboxState['effects'][number]>('Accepted marks, newest first', 'No mark yet.', [
  ['Number', ({ seq }) => String(seq)],
  ['Face', ({ face }) => face],
  ['Learner', ({ learner }) => <Id of={learner} />],
  ['Event', ({ event }) => <Id of={event} />],
  ['Mark', ({ externalId }) => <Id of={externalId} />],
])

type Sample = Readonly<Record<'code' | 'id', string> & Record<'learner' | 'event', string | undefined>>

const sampleTable = table<Sample>('Ids to try', 'The school has no code.', [
  ['Code', ({ code }) => code],
  ['Its id', ({ id }) => <Id of={id} />],
  ['Learner', ({ learner }) => <Id of={learner} />],
  ['Event', ({ event }) => <Id of={event} />],
])
