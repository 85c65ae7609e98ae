import { type RecordState, recordStates } from '../../journal/index.ts'
import { paramsOf, usageError } from '../access/visit.ts'
import type { BatchRow, ConsoleData, HashedKind, Search } from '../data/port.ts'
import type { Page } from './page.ts'
import { Form, Id, Pager, Section, table, Tabs, Time } from './parts.tsx'
import { BatchLink, isState, outcomesOf, states, tableOfRecords } from './records.tsx'

/** The search for batches and records. The typed id of a learner, an event or a mark is hashed before it becomes part of an address. */
export const batches: Page = {
  path: '/batches',
  show: async ({ query, scope }, { data }) => {
    const search = toSearch(paramsOf(query, names))
    const found = await data.search(search, scope)
    const { state } = search
    const rest = Object.fromEntries([...query].filter(([name]) => name !== 'after' && name !== 'state'))
    const about = Object.entries(rest).map(([name, value]) =>
      hashed.has(name) ? `this ${name}` : `${name} ${value}`,
    )
    const tabs = [undefined, ...recordStates].map((one) => [one, one ? states[one][0] : 'any state'] as const)
    return {
      title: 'Batches',
      json: { search, ...found },
      body: (
        <>
          <Form id="search" label="Search" fields={[searchField]} />
          <Section title={about.length === 0 ? 'Newest first' : `Found with ${about.join(', ')}`}>
            <Tabs {...{ label: 'State', name: 'state', tabs, current: state, query: rest }} />
            {found.kind === 'records' ? foundRecords(found.records) : foundBatches(state)(found.batches)}
          </Section>
          <Pager query={query} next={found.next} />
        </>
      ),
    }
  },
  act: async ({ form, scope }, { data }) => {
    const typed = form.get('text')?.replaceAll('\0', '').trim() ?? ''
    for (const query of typed === '' ? [{}] : await readingsOf(typed, data)) {
      const to = `/batches?${new URLSearchParams(query).toString()}`
      const found = await data.search({ ...toSearch(query), limit: 1 }, scope)
      const isFound = (found.kind === 'records' ? found.records : found.batches).length > 0
      if (isFound) return { isDone: true, text: '', to, json: { to } }
    }
    const text =
      'No batch or record was found with this text. A batch can be found a few seconds after its receipt.'
    return { isDone: false, text, to: '/batches', json: { to: null } }
  },
}

const searchLabel = 'Number, Content-ID, learner, event, mark, batch id, partner or day'
const searchField = { name: 'text', label: searchLabel, type: 'search', more: { required: true } }

const hashedNames = ['learner', 'event', 'mark'] as const satisfies readonly HashedKind[]
const hashed: ReadonlySet<string> = new Set(hashedNames)
/** The query parameters of the page. The first three contain hashes of ids in place of the ids. */
const names = [
  ...hashedNames,
  'batch',
  'contentId',
  'boundary',
  'partner',
  'from',
  'until',
  'state',
  'after',
] as const

type Query = Readonly<Record<string, string>>

/**
 * Returns the possible meanings of a typed text as query parameters: the ids first, then the values that several batches share. A day such
 * as `2026-11-26` has only one meaning, its time range.
 */
async function readingsOf(text: string, data: ConsoleData): Promise<readonly Query[]> {
  const byHash: Query[] = []
  for (const name of hashedNames) {
    const hash = await data.hash(name, text)
    if (hash !== undefined) byHash.push({ [name]: hash })
  }
  if (/^\d{4}-\d\d-\d\d$/.test(text) && !Number.isNaN(Date.parse(text)))
    return [{ from: text, until: new Date(Date.parse(text) + DAY_MS).toISOString().slice(0, 10) }]
  const number = /^\d{1,15}$/.test(text) ? [{ batch: text }] : []
  // A batch id is often typed without the prefix that its boundary has (service.md 4.2).
  const boundaries = ['', 'batch_', 'changeset_'].map((prefix) => ({ boundary: prefix + text }))
  return [...byHash, ...number, { contentId: text }, ...boundaries, { partner: text }]
}

const DAY_MS = 86_400_000

/** Returns the search that parameters describe. Throws `ADP_USAGE` if a parameter is not valid. */
function toSearch({
  batch,
  state,
  learner,
  event,
  mark,
  from,
  until,
  ...more
}: Partial<Record<(typeof names)[number], string | undefined>>): Search {
  if (batch !== undefined && !/^\d{1,15}$/.test(batch))
    throw usageError(
      'The batch number is not a whole number. Nothing was searched. Type the number into the search box.',
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
    'The address contains an id in place of its hash. Nothing was searched. Type the id into the search box.',
  )
}

/** Reads a day, which begins at 0:00 UTC, or a time with its zone. */
function timeIn(text: string | undefined): number | undefined {
  const ms = text === undefined ? undefined : Date.parse(text)
  if (!Number.isNaN(ms)) return ms
  throw usageError(
    'The time is not valid. Nothing was searched. Write the time in the form 2026-11-26 or 2026-11-26T08:30Z.',
  )
}

const foundBatches = (state: RecordState | undefined) =>
  table<BatchRow>('Batches, newest first', 'No batch was found.', [
    ['Batch', ({ batch }) => <BatchLink {...{ batch, state }} />],
    ['Received', ({ receivedMs }) => <Time at={receivedMs} />],
    ['Partner', ({ partner }) => partner],
    ['Served by', ({ servedBy }) => servedBy.toUpperCase()],
    ['Records', ({ records }) => records],
    ['Outcomes', outcomesOf],
    ['Batch id of the client', ({ boundary }) => <Id of={boundary} />],
  ])

const foundRecords = tableOfRecords(
  'part',
  'batch',
  'partner',
  'contentId',
  'received',
  'state',
  'cause',
  'act',
)
