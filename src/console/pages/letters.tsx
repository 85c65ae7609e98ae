import { formatCounted } from '../../compare/report/format.ts'
import { describeCause, formatCause } from '../../journal/index.ts'
import { expectOperator, paramsOf, reasonOf, usageError, type Visit } from '../access/visit.ts'
import type { ConsoleData, RecordRow, WaitingFilter, WaitingRows } from '../data/port.ts'
import type { Page } from './page.ts'
import { Form, Notice, Pager, reasonField, Section, Tabs } from './parts.tsx'
import { recordKey, states, tableOfRecords } from './records.tsx'

type Kind = WaitingFilter['kind']

interface KindOfList {
  readonly title: string
  readonly text: string
  readonly empty: string
  /** What to do about the records, or `undefined` if the remedy depends on their cause. */
  readonly remedy?: string
  /** The action on records of the list, or `undefined` if only their clients can act. */
  readonly act?: {
    readonly label: string
    readonly note: 'clear' | 'retry'
    readonly change: (data: ConsoleData, batch: number, positions: readonly number[]) => Promise<number>
    readonly done: (count: number) => string
  }
}

const kinds: Readonly<Record<Kind, KindOfList>> = {
  deadLetters: {
    title: 'Dead letters',
    text: 'The adapter no longer retries these records, and their clients do not know the outcome. Follow the remedy of each cause, then clear its records.',
    empty: 'There are no dead letters.',
    act: {
      label: 'Clear',
      note: 'clear',
      change: (data, batch, positions) => data.dismiss(batch, positions),
      done: (count) => `${formatCounted(count, 'dead letter')} cleared.`,
    },
  },
  notApplied: {
    title: 'Not applied',
    text: 'The service has none of these records. Their clients were told to send the same batches again, and have not done so yet. Remind the partner.',
    empty: 'Every client has sent its records again.',
    remedy: 'If the cause remains, remove it. Then the clients must send the same batches again.',
  },
  parked: {
    title: 'Parked',
    text: 'The adapter retries these records in the background. The action Retry makes them due at once.',
    empty: 'No records are waiting.',
    remedy: 'Wait. The adapter retries these records by itself.',
    act: {
      label: 'Retry',
      note: 'retry',
      change: (data, batch, positions) => data.retry(batch, positions),
      done: (count) => `${formatCounted(count, 'record')} due now. An instance retries them within seconds.`,
    },
  },
}

const isKind = (text: string): text is Kind => Object.hasOwn(kinds, text)

export const letters: Page = {
  path: '/letters',
  show: async (visit, { data }) => {
    const { query, scope } = visit
    const filter = filterOf(query)
    const { kind, reason, partner } = filter
    const { text, empty } = kinds[kind]
    const title = `${kinds[kind].title}${partner === undefined ? '' : ` of ${partner}`}`
    const found = await data.waiting(filter, scope)
    const { records, reasons, next } = found
    const count = reasons.reduce((sum, group) => sum + group.records, 0)
    const shown = reasons.filter((group) => reason === undefined || group.reason === reason)
    return {
      title,
      status: `${formatCounted(count, 'record')} · ${title}`,
      json: { filter, records, reasons, next },
      body: (
        <>
          <Tabs label="Kind" name="kind" tabs={kindTabs} current={kind} />
          <p class="soft">{text}</p>
          {shown.length === 0 && <Section title="Records">{empty}</Section>}
          {shown.map((group, at) => (
            <Group
              {...{ visit, filter, group, id: `group${at}`, records: reason === undefined ? [] : records }}
            />
          ))}
          {reason !== undefined && <Pager query={query} next={next} />}
        </>
      ),
    }
  },
  act: async (visit, { data, stages }) => {
    expectOperator(visit)
    const reason = reasonOf(visit)
    const filter = filterOf(visit.query)
    const { kind } = filter
    const { act } = kinds[kind]
    if (act === undefined)
      throw usageError(
        'Only the clients of these records can send them again. Nothing was done. Remind the partner.',
      )
    const chosen = await chosenOf(visit, filter, data)
    let changed = 0
    for (const [batch, records] of Map.groupBy(chosen, (record) => record.batch)) {
      const positions = records.map(({ position }) => position)
      const parts = `parts ${positions.map((position) => position + 1).join(', ')}`
      // The entry is added to the audit trail first, so that no action lacks an entry.
      await stages.recordAction(
        act.note,
        visit.actor.name,
        `${records[0]?.partner}: batch ${batch}, ${parts}: ${reason}`,
      )
      changed += await act.change(data, batch, positions)
    }
    return { isDone: true, text: act.done(changed), to: `/letters?kind=${kind}`, json: { changed } }
  },
}

/** The columns of the records in an open group. They omit the cause, the state and the remedy, which the notice above the records shows. */
const shownColumns = ['part', 'batch', 'partner', 'contentId', 'received'] as const
const tables = {
  deadLetters: tableOfRecords(...shownColumns, 'choice'),
  notApplied: tableOfRecords(...shownColumns),
  parked: tableOfRecords(...shownColumns, 'act', 'choice'),
}

const kindTabs = Object.entries(kinds).map(([kind, { title }]) => [kind, title] as const)

interface GroupProps {
  readonly visit: Visit
  readonly filter: WaitingFilter
  readonly group: WaitingRows['reasons'][number]
  readonly id: string
  /** The records of the group to choose from. Empty in the list of all groups. */
  readonly records: readonly RecordRow[]
}

/** Shows the records of one cause: the remedy once, and the action on all records or on the selected records. */
function Group({ visit, filter, group, id, records }: GroupProps) {
  const { kind, partner } = filter
  const { act, remedy } = kinds[kind]
  const { reason, state } = group
  const cause = describeCause(state, reason)
  const count = formatCounted(group.records, 'record')
  const query = new URLSearchParams({ kind, reason, ...(partner !== undefined && { partner }) })
  const isOpen = records.length > 0
  const list = isOpen && tables[kind](records)
  return (
    <Section title={`${count}: ${reason || 'no cause'}`}>
      <Notice
        tone={states[state][1]}
        what={formatCause({ ...cause, remedy: '' })}
        remedy={remedy ?? cause.remedy}
        link={isOpen ? undefined : [`/letters?${query.toString()}`, `Show ${count}`]}
      />
      {act !== undefined && visit.actor.role === 'operator' ? (
        <Form
          {...{ id, fields: [reasonField], hidden: { group: reason } }}
          label={isOpen ? `${act.label} the selected records` : `${act.label} ${count} of ${reason}`}
          name={isOpen ? undefined : 'all'}
        >
          {list}
        </Form>
      ) : (
        list
      )}
    </Section>
  )
}

function filterOf(query: URLSearchParams): WaitingFilter {
  const { kind = '', ...more } = paramsOf(query, ['kind', 'reason', 'partner', 'after'])
  return { kind: isKind(kind) ? kind : 'deadLetters', ...more }
}

/** The maximum number of records that one action changes. */
const MAX_CHOSEN = 10_000

/** Returns the selected records, or the first `MAX_CHOSEN` records of a group. Throws `ADP_USAGE` if none of them is in the list. */
async function chosenOf(
  { form, scope }: Visit,
  filter: WaitingFilter,
  data: ConsoleData,
): Promise<readonly RecordRow[]> {
  const names = new Set(form.getAll('record'))
  const isAll = form.get('all') !== null
  const reason = form.get('group') || filter.reason
  const chosen: RecordRow[] = []
  let after = isAll ? undefined : filter.after
  do {
    const listed = await data.waiting({ ...filter, reason, after }, scope)
    chosen.push(...listed.records.filter((record) => isAll || names.has(recordKey(record))))
    after = isAll ? listed.next : undefined
  } while (after !== undefined && chosen.length < MAX_CHOSEN)
  if (chosen.length > 0) return chosen
  throw usageError(
    'None of the selected records is in the list. Nothing was done. Select at least one record.',
  )
}
