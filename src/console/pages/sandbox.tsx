import { expectOperator, notFound, usageError, type Visit } from '../access/visit.ts'
import type { ConsolePorts } from '../ports.ts'
import type { Page } from './page.ts'
import { Badge, Notice, table } from './parts.tsx'

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

export const sandbox: Page = {
  path: '/sandbox',
  show: async (visit, ports) => {
    const set = await sandboxOf(visit, ports).readFaults()
    const on = switches.find(([, , , ...faults]) => has(set, faults))
    return {
      title: 'Sandbox',
      status: `${on?.[1] ?? 'Other faults'} · Sandbox`,
      json: { switch: on?.[0] ?? null, faults: set },
      body: (
        <>
          <p class="soft">
            Choose what the sandbox does, then see on the overview how the adapter handles it.
          </p>
          {on === undefined && <Notice tone="note" what="A control route has set other faults." />}
          <form method="post" aria-label="Faults">
            {faultTable(on?.[0], visit.actor.role === 'operator')(switches)}
          </form>
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

const faultTable = (on: string | undefined, isOperator: boolean) =>
  table<Switch>('Faults', '', [
    ['Fault', ([, label]) => label],
    ['What happens', ([, , effect]) => effect],
    [
      'Switch',
      ([name, label]) =>
        name === on ? (
          <Badge tone={name === 'off' ? 'good' : 'note'}>on</Badge>
        ) : (
          <button
            class="quiet"
            name="switch"
            value={name}
            disabled={!isOperator}
            aria-label={`Switch on: ${label}`}
          >
            Switch on
          </button>
        ),
    ],
  ])
