import { expectOperator, notFound, usageError, type Visit } from '../access/visit.ts'
import type { ConsolePorts, SandboxSetting, SandboxState } from '../ports.ts'
import type { Page } from './page.ts'
import { Badge, counted, Facts, Id, Section, table, Time, Token } from './parts.tsx'

/** One value of a setting; without `value` its default. */
type Switch = readonly [name: string, label: string, effect: string, value?: object]

interface Group {
  readonly setting: SandboxSetting
  readonly title: string
  /** As it is shown at its default. */
  readonly untouched: unknown
  readonly switches: readonly Switch[]
}

const onV3 = { face: 'V3' }
const lostAnswers = { kind: 'reset', apply: true, method: 'POST', ...onV3 }
const refused = { kind: 'status', status: 503, ...onV3 }
/** V3 shows it for one mark in a hundred, always the same ones. */
const differs = (kind: string) => ({ ...onV3, share: 0.01, kinds: [kind] })

const groups: readonly Group[] = [
  {
    setting: 'faults',
    title: 'Faults',
    untouched: [],
    switches: [
      ['off', 'Nothing broken', 'V3 answers as it should.'],
      ['lost', 'Answers to writes get lost', 'V3 applies each mark, and the connection breaks before its answer. Reads go on: records are looked up and confirmed.', [lostAnswers]],
      ['blind', 'Answers get lost, and reads fail', 'As above, and reads get 503: records become unknown, until the switch is off and they are looked up again.', [lostAnswers, { ...refused, method: 'GET' }]],
      ['down', 'V3 is out of service', 'Every call gets 503: nothing is applied, and clients are told that.', [refused]],
      ['throttled', 'V3 refuses calls because of its rate', 'Every second call gets 429.', [{ kind: 'rateLimit', retryAfterSeconds: 1, probability: 0.5, ...onV3 }]],
      ['slow', 'V3 is slow', 'Each call takes 3 s longer.', [{ kind: 'latency', ms: 3_000, ...onV3 }]],
    ],
  },
  {
    setting: 'values',
    title: 'Stored values',
    untouched: { times: 'keep', clock: 'client', offsetMs: 0, comments: [], nulls: [], echo: 'stored' },
    switches: [
      ['asSent', 'As they are sent', 'The service stores what a write says.'],
      ['seconds', 'Times without fractions', 'The time of a mark is cut to whole seconds.', { times: 'seconds' }],
      ['ownClock', 'Times of the service', 'The time of a mark is that of the service, two minutes ahead, whatever the client sent.', { clock: 'server', offsetMs: 120_000 }],
      ['comments', 'Comments trimmed and cut', 'Blanks around a comment go, and of the rest 40 characters stay.', { comments: ['trim', { cut: 40 }] }],
      ['zero', '0 minutes where none were sent', 'A mark without minutes of lateness gets 0.', { nulls: ['minutesLateToZero'] }],
    ],
  },
  {
    setting: 'differences',
    title: 'Differences of V3',
    untouched: null,
    switches: [
      ['agree', 'V2 and V3 agree', 'Both show what is stored.'],
      ['codes', 'Other codes', 'V3 shows another code of the same category for 1 % of all marks.', differs('code')],
      ['times', 'Times an hour later', 'V3 shows the time of 1 % of all marks an hour later.', differs('recordedOn')],
      ['cut', 'Halves of comments', 'V3 shows half of the comment of 1 % of all marks.', differs('commentCut')],
      ['missing', 'Missing marks', 'V3 shows no mark for 1 % of those that are stored.', differs('missing')],
    ],
  },
] // prettier-ignore

const SHOWN = 50

/** The stand-in service beside the adapter: what it accepted, what is set, and ids of its school to try. */
export const sandbox: Page = {
  path: '/sandbox',
  isLive: true,
  show: async (visit, ports) => {
    const { effects: accepted, settings, school } = await sandboxOf(visit, ports).read()
    const newest = accepted.toReversed().slice(0, SHOWN)
    const { codes, learners, events } = school
    const samples = codes.map((code, at) => ({ ...code, learner: learners[at], event: events[at] }))
    return {
      title: 'Sandbox',
      json: { settings, school, effects: newest },
      body: (
        <>
          <div class="columns three">
            {groups.map((group) => (
              <Switches visit={visit} group={group} set={settings[group.setting]} />
            ))}
          </div>
          <Section title="Accepted marks">
            <p class="soft">
              The service has accepted {counted(accepted.length, 'mark')}; the newest {SHOWN} are shown. Its
              learners are made up.
            </p>
            {effectTable(newest)}
          </Section>
          <Section title="School">
            <Facts
              of={[
                ['Learners', learners.length],
                ['Events', events.length],
                ['From (UTC)', <Time ms={Date.parse(school.from)} />],
                ['Before (UTC)', <Time ms={Date.parse(school.to)} />],
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
    const wanted = visit.form.get('switch')
    for (const { setting, title, switches } of groups)
      for (const [name, label, , value] of switches) {
        if (name !== wanted) continue
        const text = `${title}: ${label}.`
        await ports.stages.note('sandbox', visit.actor.name, text)
        await own.set(setting, value)
        return { isDone: true, text, to: '/sandbox', json: { switch: wanted } }
      }
    throw usageError('There is no such switch.')
  },
}

/** Error: `ADP_NOT_FOUND` where no sandbox runs beside the adapter, and for those who may not see all partners. */
function sandboxOf({ actor }: Visit, { sandbox: own }: ConsolePorts): NonNullable<ConsolePorts['sandbox']> {
  if (own === undefined || actor.partners !== undefined) throw notFound('page')
  return own
}

/** True where a setting shows all that was wanted; members with a default may be more. */
function has(shown: unknown, wanted: unknown): boolean {
  if (typeof wanted !== 'object' || wanted === null) return shown === wanted
  if (typeof shown !== 'object' || shown === null) return false
  const isWhole = !Array.isArray(wanted) || (Array.isArray(shown) && shown.length === wanted.length)
  return isWhole && Object.entries(wanted).every(([name, one]) => has(Reflect.get(shown, name), one))
}

interface SwitchesProps {
  readonly visit: Visit
  readonly group: Group
  /** As the service shows it. */
  readonly set: unknown
}

function Switches({ visit, group: { title, untouched, switches }, set }: SwitchesProps) {
  const on = switches.find(([, , , value = untouched]) => has(set, value))
  const isOperator = visit.actor.role === 'operator'
  const rows = switches.map(([name, label, effect, value]) => (
    <div class="switch">
      <p class="row">
        <button name="switch" value={name} disabled={!isOperator} aria-describedby={`${name}-effect`}>
          {label}
        </button>
        {on?.[0] === name && <Badge tone={value ? 'note' : 'good'}>on</Badge>}
      </p>
      <p class="soft" id={`${name}-effect`}>
        {effect}
      </p>
    </div>
  ))
  return (
    <Section title={title}>
      {on === undefined && <p class="notice note">Something else is set, by a control route.</p>}
      <form method="post" class="act" aria-label={title}>
        <Token visit={visit} />
        {rows}
      </form>
    </Section>
  )
}

const effectTable = table<SandboxState['effects'][number]>('Accepted marks, newest first', 'None yet.', [
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
