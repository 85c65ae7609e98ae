import { AdapterError } from '../../errors.ts'
import { expectOperator, notFound, type Visit } from '../access/visit.ts'
import type { ConsolePorts, SandboxEffect } from '../ports.ts'
import type { Page } from './page.ts'
import { Badge, counted, Form, formatCount, Live, Table } from './parts.tsx'

/** What can be broken, by name: the faults of each. */
const switches = [
  {
    name: 'lost',
    label: 'Answers to writes get lost',
    effect:
      'V3 applies each mark, and the connection breaks before its answer. Reads go on: records are looked up and confirmed.',
    faults: [{ kind: 'reset', apply: true, method: 'POST', face: 'V3' }],
  },
  {
    name: 'blind',
    label: 'Answers get lost, and reads fail',
    effect:
      'As above, and reads get 503: records become unknown, until the switch is off and they are looked up again.',
    faults: [
      { kind: 'reset', apply: true, method: 'POST', face: 'V3' },
      { kind: 'status', status: 503, method: 'GET', face: 'V3' },
    ],
  },
  {
    name: 'down',
    label: 'V3 is out of service',
    effect: 'Every call gets 503: nothing is applied, and clients are told that.',
    faults: [{ kind: 'status', status: 503, face: 'V3' }],
  },
  {
    name: 'throttled',
    label: 'V3 refuses calls because of its rate',
    effect: 'Every second call gets 429.',
    faults: [{ kind: 'rateLimit', retryAfterSeconds: 1, probability: 0.5, face: 'V3' }],
  },
  {
    name: 'slow',
    label: 'V3 is slow',
    effect: 'Each call takes 3 s longer.',
    faults: [{ kind: 'latency', ms: 3_000, face: 'V3' }],
  },
] as const

const SHOWN = 50

/** The stand-in service beside the adapter: what it accepted, and what is broken. */
export const sandbox: Page = {
  path: '/sandbox',
  show: async (visit, ports) => {
    const found = await sandboxOf(visit, ports).read()
    const newest = found.effects.toReversed().slice(0, SHOWN)
    return {
      title: 'Sandbox',
      json: { faults: found.faults, effects: newest },
      body: (
        <>
          <section>
            <h2>Switches</h2>
            <p>
              {found.faults === 0 ? (
                <Badge tone="good">nothing is broken</Badge>
              ) : (
                <Badge tone="note">{formatCount(found.faults)} faults are on</Badge>
              )}
            </p>
            {visit.actor.role === 'operator' && <Switches visit={visit} />}
          </section>
          <Live id="effects" of={newest}>
            <section>
              <h2>Accepted marks</h2>
              <p class="soft">
                The service has accepted {counted(found.effects.length, 'mark')}; the newest {SHOWN} are
                shown. Its learners are made up.
              </p>
              <Effects effects={newest} />
            </section>
          </Live>
        </>
      ),
    }
  },
  act: async (visit, ports) => {
    expectOperator(visit)
    const own = sandboxOf(visit, ports)
    const wanted = visit.form.get('switch')
    const found = switches.find(({ name }) => name === wanted)
    if (found === undefined && wanted !== 'off')
      throw new AdapterError('ADP_USAGE', 'There is no such switch.')
    const text = found === undefined ? 'The sandbox works again.' : `On: ${found.label}.`
    await ports.stages.note('sandbox', visit.actor.name, text)
    await own.setFaults(found?.faults ?? [])
    return { isDone: true, text, to: '/sandbox', json: { switch: wanted } }
  },
}

/** Error: `ADP_NOT_FOUND` where no sandbox runs beside the adapter, and for those who may not see all partners. */
function sandboxOf({ actor }: Visit, { sandbox: own }: ConsolePorts): NonNullable<ConsolePorts['sandbox']> {
  if (own === undefined || actor.partners !== undefined) throw notFound('page')
  return own
}

function Switches({ visit }: { readonly visit: Visit }) {
  return (
    <Form visit={visit} action="/sandbox" label="Switches">
      {switches.map(({ name, label, effect }) => (
        <div class="switch">
          <button name="switch" value={name} aria-describedby={`${name}-effect`}>
            {label}
          </button>
          <p class="soft" id={`${name}-effect`}>
            {effect}
          </p>
        </div>
      ))}
      <button class="quiet" name="switch" value="off">
        Nothing broken
      </button>
    </Form>
  )
}

function Effects({ effects }: { readonly effects: readonly SandboxEffect[] }) {
  return (
    <Table
      caption="Accepted marks, newest first"
      rows={effects}
      columns={[
        { heading: 'Number', cell: ({ seq }) => seq },
        { heading: 'Face', cell: ({ face }) => face },
        { heading: 'Learner', cell: ({ learner }) => <span class="mono">{learner}</span> },
        { heading: 'Event', cell: ({ event }) => <span class="mono">{event}</span> },
        { heading: 'Mark', cell: ({ externalId }) => <span class="mono">{externalId}</span> },
      ]}
      empty="None yet."
    />
  )
}
