import { AdapterError } from '../../errors.ts'
import { sees } from '../../rollout/operators.ts'
import { expectOperator, reasonOf, type Visit } from '../access/visit.ts'
import type { RecordRow, WaitingFilter } from '../data/port.ts'
import type { ConsolePorts } from '../ports.ts'
import { countRecords, Retry, State } from './batches.tsx'
import type { Page } from './page.ts'
import { counted, Form, formatCount, Live, Pager, Reason, Table, Tabs, Time } from './parts.tsx'

type Kind = WaitingFilter['kind']

const kinds = [
  ['deadLetters', 'Dead letters'],
  ['parked', 'Parked'],
] as const satisfies readonly (readonly [Kind, string])[]

/** Records whose outcome is an operator's to see to, and those that the background tries again. */
export const letters: Page = {
  path: '/letters',
  show: async (visit, { data }) => {
    const filter = filterOf(visit.query)
    const found = await data.waiting(filter, visit.scope)
    const isDead = filter.kind === 'deadLetters'
    const href = (changed: Readonly<Record<string, string>>): string =>
      `/letters?${new URLSearchParams({ kind: filter.kind, ...changed }).toString()}`
    return {
      title: isDead ? 'Dead letters' : 'Parked',
      json: { filter, ...found },
      body: (
        <>
          <Tabs
            label="Kind"
            tabs={kinds.map(([kind, name]) => [`/letters?kind=${kind}`, name, kind === filter.kind])}
          />
          <p class="soft">
            {isDead
              ? 'These are no longer tried, and their clients do not know the outcome. Do what the remedy says, then clear them.'
              : 'The background tries these again by itself. Retry makes them due at once.'}
          </p>
          {found.reasons.length > 0 && (
            <Tabs
              label="Reason"
              tabs={[
                [href({}), 'all reasons', filter.reason === undefined],
                ...found.reasons.map(
                  ({ reason, records }) =>
                    [
                      href({ reason }),
                      `${reason || 'no reason'} ${formatCount(records)}`,
                      reason === filter.reason,
                    ] as const,
                ),
              ]}
            />
          )}
          {visit.actor.role === 'operator' && found.records.length > 0 ? (
            <Form
              visit={visit}
              action={`/letters?${visit.query.toString()}`}
              label={isDead ? 'Clear' : 'Retry'}
            >
              <List records={found.records} isDead={isDead} withChoice />
              <p class="check">
                <input id="all" type="checkbox" name="all" value="1" data-selects="[name=record]" />
                <label for="all">All of this page ({countRecords(found.records.length)})</label>
              </p>
              <Reason id="reason" />
              <button>{isDead ? 'Clear the chosen' : 'Retry the chosen'}</button>
            </Form>
          ) : (
            <Live id="letters" of={found.records}>
              <List records={found.records} isDead={isDead} />
            </Live>
          )}
          <Pager
            query={visit.query}
            path="/letters"
            name="after"
            next={found.next}
            isFirst={filter.after === undefined}
          />
        </>
      ),
    }
  },
  act: async (visit, ports) => {
    expectOperator(visit)
    const reason = reasonOf(visit)
    const filter = filterOf(visit.query)
    const chosen = await chosenOf(visit, filter, ports)
    let changed = 0
    for (const [batch, records] of Map.groupBy(chosen, ({ batch: own }) => own))
      changed += await change(visit, ports, filter.kind, batch, records, reason)
    const text =
      filter.kind === 'deadLetters'
        ? `${counted(changed, 'dead letter')} cleared.`
        : `${countRecords(changed)} due now; an instance takes them up within seconds.`
    return { isDone: true, text, to: `/letters?kind=${filter.kind}`, json: { changed } }
  },
}

function filterOf(query: URLSearchParams): WaitingFilter {
  const kind = kinds.find(([own]) => own === query.get('kind'))?.[0] ?? 'deadLetters'
  return {
    kind,
    reason: query.get('reason') ?? undefined,
    partner: query.get('partner') ?? undefined,
    after: query.get('after') ?? undefined,
  }
}

interface Chosen {
  readonly batch: number
  readonly position: number
  readonly partner: string
}

/** The records that a form names; each is one that the actor may see. Error: `ADP_USAGE`. */
async function chosenOf(
  { form, scope, actor }: Visit,
  filter: WaitingFilter,
  { data }: ConsolePorts,
): Promise<readonly Chosen[]> {
  const listed = await data.waiting(filter, scope)
  const names = new Set(form.getAll('record'))
  const isAll = form.get('all') !== null
  const chosen = listed.records.filter((record) => isAll || names.has(nameOf(record)))
  if (chosen.length > 0 && chosen.every(({ partner }) => sees(actor, partner))) return chosen
  throw new AdapterError('ADP_USAGE', 'None of these records is in the list any more. Choose at least one.')
}

const nameOf = ({ batch, position }: Chosen): string => `${batch}.${position}`

/** The audit trail says what was asked before it is done: what is not written there is not done. */
async function change(
  { actor }: Visit,
  { data, stages }: ConsolePorts,
  kind: Kind,
  batch: number,
  records: readonly Chosen[],
  reason: string,
): Promise<number> {
  const [first] = records
  if (first === undefined) return 0
  const positions = records.map(({ position }) => position)
  const isDead = kind === 'deadLetters'
  const what = isDead ? `parts ${positions.map((position) => position + 1).join(', ')}` : 'what waits'
  await stages.note(
    isDead ? 'clear' : 'retry',
    actor.name,
    `${first.partner}: batch ${batch}, ${what}: ${reason}`,
  )
  return isDead ? data.dismiss(batch, positions) : data.retry(batch)
}

interface ListProps {
  readonly records: readonly RecordRow[]
  readonly isDead: boolean
  /** Each row has a box to choose it. */
  readonly withChoice?: boolean
}

function List({ records, isDead, withChoice = false }: ListProps) {
  const choice = (record: RecordRow) => (
    <input
      type="checkbox"
      name="record"
      value={nameOf(record)}
      aria-label={`Part ${record.position + 1} of batch ${record.batch}`}
    />
  )
  return (
    <Table
      caption="Records"
      rows={records}
      columns={[
        withChoice && ['Choose', choice],
        [
          'Part',
          ({ batch, position }) => (
            <a
              class="name"
              href={`/batches/${batch}/${position + 1}`}
            >{`${position + 1} of batch ${batch}`}</a>
          ),
        ],
        ['Partner', ({ partner }) => partner],
        ['Received (UTC)', ({ receivedMs }) => <Time ms={receivedMs} />],
        ['State', (record) => <State record={{ ...record, deadLetter: false }} />],
        ['Cause', ({ reason }) => reason ?? ''],
        ['Attempts', ({ attempts }) => attempts, 'number'],
        isDead
          ? ['Remedy', ({ remedy }) => remedy ?? '']
          : ['Next try (UTC)', ({ retry }) => <Retry retry={retry} />],
      ]}
      empty={isDead ? 'There is no dead letter.' : 'Nothing waits.'}
    />
  )
}
