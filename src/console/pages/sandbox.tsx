import { AdapterError } from '../../errors.ts'
import { expectOperator, notFound, type Visit } from '../access/visit.ts'
import type { ConsolePorts, SandboxEffect, SandboxSchool, SandboxSetting, SandboxState } from '../ports.ts'
import type { Page } from './page.ts'
import { Badge, counted, Facts, Form, formatCount, Id, Live, Section, Table, Time } from './parts.tsx'

/** One value of a setting. */
interface Switch {
  readonly name: string
  readonly label: string
  readonly effect: string
  /** Undefined: the default. */
  readonly value?: object
}

interface Group {
  readonly setting: SandboxSetting
  readonly title: string
  /** As it is shown at its default. */
  readonly untouched: unknown
  readonly switches: readonly Switch[]
}

/** V3 shows it for one mark in a hundred, always the same ones. */
const differs = (kind: string) => ({ face: 'V3', share: 0.01, kinds: [kind] })

const groups: readonly Group[] = [
  {
    setting: 'faults',
    title: 'Faults',
    untouched: [],
    switches: [
      { name: 'off', label: 'Nothing broken', effect: 'V3 answers as it should.' },
      {
        name: 'lost',
        label: 'Answers to writes get lost',
        effect:
          'V3 applies each mark, and the connection breaks before its answer. Reads go on: records are looked up and confirmed.',
        value: [{ kind: 'reset', apply: true, method: 'POST', face: 'V3' }],
      },
      {
        name: 'blind',
        label: 'Answers get lost, and reads fail',
        effect:
          'As above, and reads get 503: records become unknown, until the switch is off and they are looked up again.',
        value: [
          { kind: 'reset', apply: true, method: 'POST', face: 'V3' },
          { kind: 'status', status: 503, method: 'GET', face: 'V3' },
        ],
      },
      {
        name: 'down',
        label: 'V3 is out of service',
        effect: 'Every call gets 503: nothing is applied, and clients are told that.',
        value: [{ kind: 'status', status: 503, face: 'V3' }],
      },
      {
        name: 'throttled',
        label: 'V3 refuses calls because of its rate',
        effect: 'Every second call gets 429.',
        value: [{ kind: 'rateLimit', retryAfterSeconds: 1, probability: 0.5, face: 'V3' }],
      },
      {
        name: 'slow',
        label: 'V3 is slow',
        effect: 'Each call takes 3 s longer.',
        value: [{ kind: 'latency', ms: 3_000, face: 'V3' }],
      },
    ],
  },
  {
    setting: 'values',
    title: 'Stored values',
    untouched: { times: 'keep', clock: 'client', offsetMs: 0, comments: [], nulls: [], echo: 'stored' },
    switches: [
      { name: 'asSent', label: 'As they are sent', effect: 'The service stores what a write says.' },
      {
        name: 'seconds',
        label: 'Times without fractions',
        effect: 'The time of a mark is cut to whole seconds.',
        value: { times: 'seconds' },
      },
      {
        name: 'ownClock',
        label: 'Times of the service',
        effect: 'The time of a mark is that of the service, two minutes ahead, whatever the client sent.',
        value: { clock: 'server', offsetMs: 120_000 },
      },
      {
        name: 'comments',
        label: 'Comments trimmed and cut',
        effect: 'Blanks around a comment go, and of the rest 40 characters stay.',
        value: { comments: ['trim', { cut: 40 }] },
      },
      {
        name: 'zero',
        label: '0 minutes where none were sent',
        effect: 'A mark without minutes of lateness gets 0.',
        value: { nulls: ['minutesLateToZero'] },
      },
    ],
  },
  {
    setting: 'differences',
    title: 'Differences of V3',
    untouched: null,
    switches: [
      { name: 'agree', label: 'V2 and V3 agree', effect: 'Both show what is stored.' },
      {
        name: 'codes',
        label: 'Other codes',
        effect: 'V3 shows another code of the same category for 1 % of all marks.',
        value: differs('code'),
      },
      {
        name: 'times',
        label: 'Times an hour later',
        effect: 'V3 shows the time of 1 % of all marks an hour later.',
        value: differs('recordedOn'),
      },
      {
        name: 'cut',
        label: 'Halves of comments',
        effect: 'V3 shows half of the comment of 1 % of all marks.',
        value: differs('commentCut'),
      },
      {
        name: 'missing',
        label: 'Missing marks',
        effect: 'V3 shows no mark for 1 % of those that are stored.',
        value: differs('missing'),
      },
    ],
  },
]

const SHOWN = 50
const SAMPLES = 10

/** The stand-in service beside the adapter: what it accepted, what is set, and ids of its school to try. */
export const sandbox: Page = {
  path: '/sandbox',
  show: async (visit, ports) => {
    const { effects, settings, school } = await sandboxOf(visit, ports).read()
    const newest = effects.toReversed().slice(0, SHOWN)
    return {
      title: 'Sandbox',
      json: { settings, school, effects: newest },
      body: (
        <>
          <Live id="switches" of={settings}>
            <div class="columns three">
              {groups.map((group) => (
                <Switches visit={visit} group={group} settings={settings} />
              ))}
            </div>
          </Live>
          <Live id="effects" of={newest}>
            <Section title="Accepted marks">
              <p class="soft">
                The service has accepted {counted(effects.length, 'mark')}; the newest {SHOWN} are shown. Its
                learners are made up.
              </p>
              <Effects effects={newest} />
            </Section>
          </Live>
          <School school={school} />
        </>
      ),
    }
  },
  act: async (visit, ports) => {
    expectOperator(visit)
    const own = sandboxOf(visit, ports)
    const wanted = visit.form.get('switch')
    for (const { setting, title, switches } of groups)
      for (const { name, label, value } of switches) {
        if (name !== wanted) continue
        const text = `${title}: ${label}.`
        await ports.stages.note('sandbox', visit.actor.name, text)
        await own.set(setting, value)
        return { isDone: true, text, to: '/sandbox', json: { switch: wanted } }
      }
    throw new AdapterError('ADP_USAGE', 'There is no such switch.')
  },
}

/** Error: `ADP_NOT_FOUND` where no sandbox runs beside the adapter, and for those who may not see all partners. */
function sandboxOf({ actor }: Visit, { sandbox: own }: ConsolePorts): NonNullable<ConsolePorts['sandbox']> {
  if (own === undefined || actor.partners !== undefined) throw notFound('page')
  return own
}

/** True where a setting shows all that was wanted; members with a default may be more. */
function has(shown: unknown, wanted: unknown): boolean {
  if (Array.isArray(wanted))
    return (
      Array.isArray(shown) &&
      shown.length === wanted.length &&
      wanted.every((one, at) => has(shown[at] as unknown, one))
    )
  if (typeof wanted !== 'object' || wanted === null) return shown === wanted
  return (
    typeof shown === 'object' &&
    shown !== null &&
    Object.entries(wanted).every(([name, one]) => has(Reflect.get(shown, name), one))
  )
}

interface SwitchesProps extends Pick<SandboxState, 'settings'> {
  readonly visit: Visit
  readonly group: Group
}

function Switches({ visit, group: { setting, title, untouched, switches }, settings }: SwitchesProps) {
  const on = switches.find(({ value = untouched }) => has(settings[setting], value))
  const isOperator = visit.actor.role === 'operator'
  const rows = switches.map(({ name, label, effect, value }) => (
    <div class="switch">
      <p class="row">
        {isOperator ? (
          <button class={value ? '' : 'quiet'} name="switch" value={name} aria-describedby={`${name}-effect`}>
            {label}
          </button>
        ) : (
          label
        )}
        {on?.name === name && <Badge tone={value ? 'note' : 'good'}>on</Badge>}
      </p>
      <p class="soft" id={`${name}-effect`}>
        {effect}
      </p>
    </div>
  ))
  return (
    <Section title={title}>
      {on === undefined && <p class="notice note">Something else is set, by a control route.</p>}
      {isOperator ? (
        <Form visit={visit} action="/sandbox" label={title}>
          {rows}
        </Form>
      ) : (
        <div class="act">{rows}</div>
      )}
    </Section>
  )
}

function Effects({ effects }: { readonly effects: readonly SandboxEffect[] }) {
  return (
    <Table
      caption="Accepted marks, newest first"
      rows={effects}
      columns={[
        ['Number', ({ seq }) => seq],
        ['Face', ({ face }) => face],
        ['Learner', ({ learner }) => <Id of={learner} />],
        ['Event', ({ event }) => <Id of={event} />],
        ['Mark', ({ externalId }) => <Id of={externalId} />],
      ]}
      empty="None yet."
    />
  )
}

function School({ school: { learners, events, codes, from, to } }: { readonly school: SandboxSchool }) {
  const samples = learners.slice(0, SAMPLES).map((learner, at) => ({ learner, event: events[at] ?? '' }))
  return (
    <Section title="School">
      <Facts
        of={[
          ['Learners', formatCount(learners.length)],
          ['Events', formatCount(events.length)],
          ['Codes', formatCount(codes.length)],
          ['From (UTC)', <Time ms={Date.parse(from)} />],
          ['Before (UTC)', <Time ms={Date.parse(to)} />],
        ]}
      />
      <div class="columns">
        <Table
          caption="Learners and events to try"
          rows={samples}
          columns={[
            ['Learner', ({ learner }) => <Id of={learner} />],
            ['Event', ({ event }) => <Id of={event} />],
          ]}
          empty="The school has no learner."
        />
        <Table
          caption="Attendance codes"
          rows={codes}
          columns={[
            ['Code', ({ code }) => code],
            ['Id', ({ id }) => <Id of={id} />],
          ]}
          empty="The school has no code."
        />
      </div>
    </Section>
  )
}
