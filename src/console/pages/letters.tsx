import { formatCounted } from '../../compare/report/format.ts'
import { sees } from '../../rollout/operators.ts'
import { expectOperator, paramsOf, reasonOf, usageError, type Visit } from '../access/visit.ts'
import type { ConsoleData, RecordRow, WaitingFilter } from '../data/port.ts'
import type { ConsolePorts } from '../ports.ts'
import type { Page } from './page.ts'
import { type Column, Form, Pager, reasonField, Section, table, Tabs } from './parts.tsx'
import { recordColumns } from './records.tsx'

type Kind = WaitingFilter['kind']

const kinds = {
  deadLetters: {
    title: 'Dead letters',
    text: 'The adapter no longer retries these records, and their clients do not know the outcome. Follow the remedy of each record, then clear it.',
    empty: 'There is no dead letter.',
    action: 'Clear',
    note: 'clear',
    noted: (parts: string) => `parts ${parts}`,
    change: (data: ConsoleData, batch: number, positions: readonly number[]) =>
      data.dismiss(batch, positions),
    done: (count: number) => `${formatCounted(count, 'dead letter')} cleared.`,
  },
  parked: {
    title: 'Parked',
    text: 'The adapter retries these records in the background. The action Retry makes them due at once.',
    empty: 'No record is waiting.',
    action: 'Retry',
    note: 'retry',
    noted: () => 'all waiting records',
    change: (data: ConsoleData, batch: number) => data.retry(batch),
    done: (count: number) =>
      `${formatCounted(count, 'record')} due now. An instance retries them within seconds.`,
  },
} as const satisfies Record<Kind, object>

const isKind = (text: string): text is Kind => Object.hasOwn(kinds, text)

export const letters: Page = {
  path: '/letters',
  isLive: true,
  show: async (visit, { data }) => {
    const { query, scope, actor } = visit
    const filter = filterOf(query)
    const { kind } = filter
    const { title, text, action } = kinds[kind]
    const { records, reasons, next } = await data.waiting(filter, scope)
    const causes = reasons.map((one) => [one.reason, `${one.reason || 'none'}: ${one.records}`] as const)
    const tabs = [[undefined, 'all reasons'] as const, ...causes]
    const all = { name: 'all', type: 'checkbox', more: { 'data-selects': '[name=record]' } }
    const fields = [
      { ...all, label: `All on this page (${formatCounted(records.length, 'record')})` },
      reasonField,
    ]
    return {
      title,
      json: { filter, records, reasons, next },
      body: (
        <>
          <Tabs label="Kind" name="kind" tabs={kindTabs} current={kind} />
          <p class="soft">{text}</p>
          {causes.length > 0 && (
            <Tabs label="Reason" name="reason" tabs={tabs} current={filter.reason} query={{ kind }} />
          )}
          {actor.role === 'operator' && records.length > 0 ? (
            <Form visit={visit} id="letters" label={`${action} the selected records`} fields={fields}>
              {listOf(kind, [choice])(records)}
            </Form>
          ) : (
            <Section title="Records">{listOf(kind, [])(records)}</Section>
          )}
          <Pager query={query} next={next} />
        </>
      ),
    }
  },
  act: async (visit, ports) => {
    expectOperator(visit)
    const reason = reasonOf(visit)
    const filter = filterOf(visit.query)
    const { kind } = filter
    const { note, noted, change, done } = kinds[kind]
    const chosen = await chosenOf(visit, filter, ports)
    let changed = 0
    for (const [batch, records] of Map.groupBy(chosen, (record) => record.batch)) {
      const positions = records.map(({ position }) => position)
      const parts = noted(positions.map((position) => position + 1).join(', '))
      // The entry is added to the audit trail first, so that no action lacks an entry.
      await ports.stages.recordAction(
        note,
        visit.actor.name,
        `${records[0]?.partner}: batch ${batch}, ${parts}: ${reason}`,
      )
      changed += await change(ports.data, batch, positions)
    }
    return { isDone: true, text: done(changed), to: `/letters?kind=${kind}`, json: { changed } }
  },
}

const kindTabs = Object.entries(kinds).map(([kind, { title }]) => [kind, title] as const)

function filterOf(query: URLSearchParams): WaitingFilter {
  const { kind = '', ...more } = paramsOf(query, ['kind', 'reason', 'partner', 'after'])
  return { kind: isKind(kind) ? kind : 'deadLetters', ...more }
}

/** Returns the selected records. Throws `ADP_USAGE` if none of them is in the list, or if the person may not see one of them. */
async function chosenOf(
  { form, scope, actor }: Visit,
  filter: WaitingFilter,
  { data }: ConsolePorts,
): Promise<readonly RecordRow[]> {
  const listed = await data.waiting(filter, scope)
  const names = new Set(form.getAll('record'))
  const isAll = form.get('all') !== null
  const chosen = listed.records.filter((record) => isAll || names.has(recordKey(record)))
  if (chosen.length > 0 && chosen.every(({ partner }) => sees(actor, partner))) return chosen
  throw usageError(
    'None of the selected records is in the list. Nothing was done. Select at least one record.',
  )
}

const recordKey = ({ batch, position }: RecordRow): string => `${batch}.${position}`

const choice: Column<RecordRow> = [
  'Choose',
  (record) => (
    <input
      type="checkbox"
      name="record"
      value={recordKey(record)}
      aria-label={`Part ${record.position + 1} of batch ${record.batch}`}
    />
  ),
]

function listOf(kind: Kind, first: readonly Column<RecordRow>[]) {
  const { batch, part, partner, received, state, reason, attempts, remedy, next } = recordColumns
  const last = kind === 'deadLetters' ? remedy : next
  const columns = [...first, batch, part, partner, received, state, reason, attempts, last]
  return table('Records', kinds[kind].empty, columns)
}
