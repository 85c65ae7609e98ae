import { recordStates } from '../../journal/index.ts'
import { paramsOf, usageError, type Visit } from '../access/visit.ts'
import type { BatchRow, HashedKind, Search } from '../data/port.ts'
import type { Page } from './page.ts'
import { type Field, Form, Id, Pager, Section, table, Time } from './parts.tsx'
import { BatchLink, isState, Outcomes, recordColumns, states } from './records.tsx'

/** The search for batches and records. The typed id of a learner, an event or a mark is hashed before it becomes part of an address. */
export const batches: Page = {
  path: '/batches',
  isLive: true,
  show: async (visit, { data }) => {
    const { query } = visit
    const search = searchOf(visit)
    const found = await data.search(search, visit.scope)
    const hashes = hashedNames.filter((name) => query.has(name))
    return {
      title: 'Batches',
      json: { search, ...found },
      body: (
        <>
          <Form visit={visit} id="search" label="Search" fields={fieldsOf(query)} beside={allBatches} />
          <Section title="Found">
            {hashes.length > 0 && (
              <p class="soft">
                Searched: {hashes.map((name) => `${name} with hash ${query.get(name)}`).join(', ')}.
              </p>
            )}
            {found.kind === 'records' ? foundRecords(found.records) : foundBatches(found.batches)}
          </Section>
          <Pager query={query} next={found.next} />
        </>
      ),
    }
  },
  act: async ({ form }, { data }) => {
    const given = new URLSearchParams()
    for (const { name } of fieldsOf(form)) {
      const typed = form.get(name)?.trim() ?? ''
      if (typed === '') continue
      const value = isHashed(name) ? await data.hash(name, typed) : typed
      if (value === undefined)
        throw usageError(
          `The id of the ${name} is not a GUID. Nothing was searched. Type the GUID of the ${name}.`,
        )
      given.set(name, value)
    }
    const to = `/batches?${given.toString()}`
    return { isDone: true, text: '', to, json: { to } }
  },
}

const allBatches = <a href="/batches">All batches</a>

/** The fields for ids. Only the hashes of these ids are searched. */
const hashedNames = ['learner', 'event', 'mark'] as const satisfies readonly HashedKind[]
const isHashed = (name: string): name is HashedKind => hashedNames.some((one) => one === name)

/** Returns the fields of the search form. The fields for hashed ids are empty. */
function fieldsOf(query: URLSearchParams): readonly Field[] {
  const field = (name: string, label: string, type?: string): Field => ({
    ...{ name, label, value: query.get(name) ?? '', ...(type !== undefined && { type }) },
  })
  const options = recordStates.map((state) => [state, states[state][0]] as const)
  return [
    { ...field('state', 'State of a record'), options: [['', 'any'], ...options] },
    field('batch', 'Batch number'),
    field('boundary', 'Batch id of the client (boundary)'),
    field('contentId', 'Content-ID'),
    ...hashedNames.map((name) => ({ name, label: `Guid of the ${name} (only its hash is used)` })),
    field('partner', 'Partner'),
    field('from', 'Received from (UTC)', 'datetime-local'),
    field('until', 'Received before (UTC)', 'datetime-local'),
  ]
}

/** Returns the search that the parameters of the address describe. Throws `ADP_USAGE` if a parameter is not valid. */
function searchOf({ query }: Visit): Search {
  const names = [
    ...hashedNames,
    'batch',
    'state',
    'boundary',
    'contentId',
    'partner',
    'from',
    'until',
    'after',
  ] as const
  const { batch, state, learner, event, mark, from, until, ...more } = paramsOf(query, names)
  if (batch !== undefined && !/^\d{1,15}$/.test(batch))
    throw usageError(
      'The batch number is not a whole number. Nothing was searched. Type the batch id of the client into its own field.',
    )
  if (state !== undefined && !isState(state))
    throw usageError('The state is not known. Nothing was searched. Choose a state from the list.')
  return {
    ...{ ...more, state, batch: batch === undefined ? undefined : Number(batch) },
    ...{ learner: hashIn(learner), event: hashIn(event), mark: hashIn(mark) },
    ...{ fromMs: timeIn(from), untilMs: timeIn(until) },
  }
}

function hashIn(text: string | undefined): string | undefined {
  if (text === undefined || /^[0-9a-f]{13}$/.test(text)) return text
  throw usageError(
    'The address contains an id in place of its hash. Nothing was searched. Type the id into the search form.',
  )
}

/** Reads a time as UTC, because the form fields for a time have no time zone. */
function timeIn(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const ms = Date.parse(/(?:Z|[+-]\d\d:\d\d)$/.test(text) || text.length <= 10 ? text : `${text}Z`)
  if (!Number.isNaN(ms)) return ms
  throw usageError(
    'The time is not valid. Nothing was searched. Write the time in the form 2026-11-26T08:30.',
  )
}

const foundBatches = table<BatchRow>('Batches, newest first', 'No batch was found.', [
  ['Batch', ({ batch }) => <BatchLink batch={batch} />],
  ['Received', ({ receivedMs }) => <Time at={receivedMs} />],
  ['Partner', ({ partner }) => partner],
  ['Served by', ({ servedBy }) => servedBy.toUpperCase()],
  ['Records', ({ records }) => records],
  ['Outcomes', (batch) => <Outcomes batch={batch} />],
  ['Batch id of the client', ({ boundary }) => <Id of={boundary} />],
])

const { part, batch, partner, contentId, state, reason, attempts, settled, next, instance } = recordColumns
const foundRecords = table('Records, newest first', 'No record was found.', [
  ...[part, batch, partner, contentId, state, reason, attempts, settled, next, instance],
])
