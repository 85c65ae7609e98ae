import { AdapterError } from '../../errors.ts'
import { type RecordState, recordStates } from '../../journal/index.ts'
import { notFound, numberOf, type Visit } from '../access/visit.ts'
import type {
  BatchDetails,
  BatchRow,
  HashedKind,
  RecordRow,
  Search,
  SearchResult,
  Step,
  StepKind,
} from '../data/port.ts'
import type { Page } from './page.ts'
import {
  Badge,
  counted,
  Facts,
  Form,
  formatCount,
  Id,
  Live,
  Pager,
  PartnerLink,
  Section,
  Table,
  Tabs,
  Time,
  type Tone,
} from './parts.tsx'

/** Finds batches and records. What is typed of a learner, an event or a mark becomes a hash before it is in an address. */
export const batches: Page = {
  path: '/batches',
  show: async (visit, { data }) => {
    const search = searchOf(visit)
    const found = await data.search(search, visit.scope)
    const isSearch = Object.entries(search).some(([name, value]) => name !== 'after' && value !== undefined)
    return {
      title: 'Batches',
      json: { search, ...found },
      body: (
        <>
          <SearchForm visit={visit} search={search} />
          {isSearch && <Searched search={search} />}
          <Live id="found" of={found}>
            <Found found={found} isSearch={isSearch} />
          </Live>
          <Pager
            query={visit.query}
            path="/batches"
            name="after"
            next={found.next}
            isFirst={search.after === undefined}
          />
        </>
      ),
    }
  },
  act: async ({ form }, { data }) => {
    const given = new URLSearchParams()
    for (const name of ['state', ...fields.map(([own]) => own)]) {
      const typed = form.get(name)?.trim() ?? ''
      if (typed === '') continue
      const value = isHashed(name) ? await data.hash(name, typed) : typed
      if (value === undefined) throw new AdapterError('ADP_USAGE', `The id of the ${name} is not a guid.`)
      given.set(name, value)
    }
    const to = `/batches?${given.toString()}`
    return { isDone: true, text: '', to, json: { to } }
  },
}

/** What a search is typed into. Of ids only hashes go on, so that their fields are always empty. */
const fields: readonly (readonly [name: string, label: string, type?: 'datetime-local'])[] = [
  ['batch', 'Batch number'],
  ['boundary', 'Batch id of the client (boundary)'],
  ['contentId', 'Content-ID'],
  ['learner', 'Learner (guid; only its hash is used)'],
  ['event', 'Event (guid; only its hash is used)'],
  ['mark', 'Mark (guid; only its hash is used)'],
  ['partner', 'Partner'],
  ['from', 'Received from (UTC)', 'datetime-local'],
  ['until', 'Received before (UTC)', 'datetime-local'],
]

const hashedFields = ['learner', 'event', 'mark'] as const
const isHashed = (name: string): name is HashedKind => (hashedFields as readonly string[]).includes(name)

/** The search that an address asks for. Error: `ADP_USAGE`. */
function searchOf({ query }: Visit): Search {
  const text = (name: string): string | undefined => {
    const value = query.get(name)?.trim() ?? ''
    return value === '' ? undefined : value
  }
  const batch = text('batch')
  if (batch !== undefined && !/^\d{1,15}$/.test(batch))
    throw new AdapterError(
      'ADP_USAGE',
      'The number of a batch is a whole number; the id of its client goes into its own field.',
    )
  const state = text('state')
  if (state !== undefined && !isState(state)) throw new AdapterError('ADP_USAGE', 'There is no such state.')
  return {
    batch: batch === undefined ? undefined : Number(batch),
    state,
    boundary: text('boundary'),
    contentId: text('contentId'),
    learner: hashIn(text('learner')),
    event: hashIn(text('event')),
    mark: hashIn(text('mark')),
    partner: text('partner'),
    fromMs: timeIn(text('from')),
    untilMs: timeIn(text('until')),
    after: text('after'),
  }
}

const isState = (text: string): text is RecordState => (recordStates as readonly string[]).includes(text)

function hashIn(text: string | undefined): string | undefined {
  if (text === undefined || /^[0-9a-f]{13}$/.test(text)) return text
  throw new AdapterError(
    'ADP_USAGE',
    'An address holds the hash of an id, never the id: type it into the page.',
  )
}

/** Fields of a time have no zone; the console's is UTC. */
function timeIn(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const ms = Date.parse(/(?:Z|[+-]\d\d:\d\d)$/.test(text) || text.length <= 10 ? text : `${text}Z`)
  if (!Number.isNaN(ms)) return ms
  throw new AdapterError('ADP_USAGE', 'A time is one such as 2026-11-26T08:30.')
}

function SearchForm({ visit, search }: { readonly visit: Visit; readonly search: Search }) {
  const { query } = visit
  return (
    <Form visit={visit} action="/batches" label="Search">
      <div class="fields">
        {fields.map(([name, label, type]) => (
          <p class="field">
            <label for={`search-${name}`}>{label}</label>
            <input
              id={`search-${name}`}
              name={name}
              {...(type && { type })}
              value={isHashed(name) ? '' : (query.get(name) ?? '')}
              autocomplete="off"
            />
          </p>
        ))}
        <p class="field">
          <label for="search-state">State of a record</label>
          <select id="search-state" name="state">
            <option value="">any</option>
            {recordStates.map((state) => (
              <option value={state} selected={search.state === state}>
                {stateNames[state]}
              </option>
            ))}
          </select>
        </p>
      </div>
      <p class="row">
        <button>Search</button>
        <a href="/batches">All batches</a>
      </p>
    </Form>
  )
}

/** What was searched by hashes, which no field shows. */
function Searched({ search }: { readonly search: Search }) {
  const hashes = hashedFields.flatMap((kind) =>
    search[kind] === undefined ? [] : [`${kind} with hash ${search[kind]}`],
  )
  return hashes.length === 0 ? null : <p class="soft">Searched: {hashes.join(', ')}.</p>
}

function Found({ found, isSearch }: { readonly found: SearchResult; readonly isSearch: boolean }) {
  const empty = isSearch ? 'Nothing fits.' : 'No batch was received yet.'
  if (found.kind === 'records') return <Records records={found.records} empty={empty} withBatch />
  return (
    <Table
      caption="Batches, newest first"
      rows={found.batches}
      columns={[
        ['Batch', ({ batch }) => <a href={`/batches/${batch}`}>{batch}</a>],
        ['Received (UTC)', ({ receivedMs }) => <Time ms={receivedMs} />],
        ['Partner', ({ partner }) => partner],
        ['Served by', ({ servedBy }) => servedBy.toUpperCase()],
        ['Records', ({ records }) => formatCount(records), 'number'],
        ['Outcomes', (batch) => <Outcomes batch={batch} />],
        ['Batch id of the client', ({ boundary }) => <Id of={boundary} />],
      ]}
      empty={empty}
    />
  )
}

const stateNames: Readonly<Record<RecordState, string>> = {
  open: 'in flight',
  confirmed: 'confirmed',
  refused: 'refused',
  unknown: 'unknown',
  parked: 'parked',
}
const stateTones: Readonly<Record<RecordState, Tone>> = {
  open: 'plain',
  confirmed: 'good',
  refused: 'bad',
  unknown: 'note',
  parked: 'note',
}

function Outcomes({ batch: { states } }: { readonly batch: Pick<BatchRow, 'states'> }) {
  return (
    <ul class="badges">
      {recordStates
        .filter((state) => states[state] > 0)
        .map((state) => (
          <li>
            <Badge tone={stateTones[state]}>
              {formatCount(states[state])} {stateNames[state]}
            </Badge>
          </li>
        ))}
    </ul>
  )
}

const PAGE = 100

/** One batch: its records, a page at a time, and what happened on its way. */
export const batch: Page = {
  path: '/batches/:batch',
  show: async (visit, { data }) => {
    const number = numberOf(visit, 'batch')
    const { query, scope } = visit
    const from = /^\d{1,9}$/.test(query.get('from') ?? '') ? Number(query.get('from')) : 0
    const given = query.get('state') ?? ''
    const state = isState(given) ? given : undefined
    const details = await data.batch(number, scope)
    if (details === undefined) throw notFound('batch')
    const { records, next } = await data.records(number, { from, limit: PAGE, state })
    return {
      title: `Batch ${number}`,
      json: { ...details, page: { from, records, next } },
      body: (
        <>
          <Live id="batch" of={[details, records]}>
            <BatchFacts details={details} />
            <Section title="Exceptional steps">
              <Timeline steps={details.timeline} />
            </Section>
            <Section title="Records">
              <Tabs
                label="State"
                tabs={[
                  [`/batches/${number}`, `all ${formatCount(details.records)}`, state === undefined],
                  ...recordStates
                    .filter((one) => details.states[one] > 0)
                    .map(
                      (one) =>
                        [
                          `/batches/${number}?state=${one}`,
                          `${stateNames[one]} ${formatCount(details.states[one])}`,
                          one === state,
                        ] as const,
                    ),
                ]}
              />
              <Records records={records} empty="No record is in this state." />
            </Section>
          </Live>
          <Pager
            query={query}
            path={`/batches/${number}`}
            name="from"
            next={next?.toString()}
            isFirst={from === 0}
          />
        </>
      ),
    }
  },
}

function BatchFacts({ details }: { readonly details: BatchDetails }) {
  const { partner, receivedMs, boundary, servedBy, answered, hasRequest, instance, deadLetters, unreadable } =
    details
  return (
    <section aria-label="Facts">
      <Outcomes batch={details} />
      <Facts
        of={[
          ['Partner', <PartnerLink id={partner} />],
          ['Received (UTC)', <Time ms={receivedMs} />],
          ['Served by', servedBy.toUpperCase()],
          ['Reply', answered ? 'written out whole' : 'not written out whole'],
          ['Request', hasRequest ? 'kept' : 'not kept'],
          ['Instance', instance],
          ['Dead letters', formatCount(deadLetters)],
          ['Batch id of the client', <Id of={boundary} />],
        ]}
      />
      {unreadable !== undefined && (
        <p class="soft">
          Its records are not found by learner, event or Content-ID: {unreadableTexts[unreadable]}.
        </p>
      )}
    </section>
  )
}

const unreadableTexts = {
  onV2: 'V2 served it, and its request is not kept',
  gone: 'its request was past its time',
  key: 'the key of its request is missing',
  damaged: 'its request cannot be read',
} as const

const stepTexts: Readonly<Record<StepKind, string>> = {
  replayed: 'came again and was answered from the journal',
  joined: 'came again while it was running',
  retried: 'opened again',
  readBack: 'looked up in V3',
  unknown: 'settled as unknown',
  parked: 'parked',
  superseded: 'replaced by a newer mark',
  takenOver: 'taken over from another instance',
  recovered: 'settled for good',
}

function Timeline({ steps }: { readonly steps: readonly Step[] }) {
  return (
    <Table
      caption="Exceptional steps, oldest first"
      rows={steps}
      columns={[
        ['Time (UTC)', ({ atMs }) => <Time ms={atMs} />],
        ['Step', ({ kind }) => stepTexts[kind]],
        ['Parts', ({ positions }) => formatParts(positions)],
        ['Reason', ({ reason = '' }) => reason],
        ['Instance', ({ instance }) => instance ?? '–'],
      ]}
      empty="None: it was answered straight away."
    />
  )
}

const formatParts = (positions: Step['positions']): string =>
  positions.length === 0
    ? 'all'
    : positions.map(([from, to]) => (from === to ? `${from + 1}` : `${from + 1} to ${to + 1}`)).join(', ')

/** Records with their outcomes. */
function Records({ records, empty, withBatch = false }: RecordsProps) {
  return (
    <Table
      caption="Records"
      rows={records}
      columns={[
        [
          'Part',
          ({ batch: number, position }) => <a href={`/batches/${number}/${position + 1}`}>{position + 1}</a>,
        ],
        withBatch && ['Batch', ({ batch: number }) => <a href={`/batches/${number}`}>{number}</a>],
        withBatch && ['Partner', ({ partner }) => partner],
        ['Content-ID', ({ contentId }) => <Id of={contentId} />],
        ['State', (record) => <State record={record} />],
        ['Reason', ({ reason }) => reason ?? ''],
        ['Attempts', ({ attempts }) => attempts, 'number'],
        ['Settled (UTC)', ({ settledMs }) => <Time ms={settledMs} />],
        ['Next try (UTC)', ({ retry }) => <Retry retry={retry} />],
        ['Instance', ({ instance }) => instance, 'number'],
      ]}
      empty={empty}
    />
  )
}

interface RecordsProps {
  readonly records: readonly RecordRow[]
  readonly empty: string
  readonly withBatch?: boolean
}

export function State({ record: { state, superseded, deadLetter } }: { readonly record: RecordRow }) {
  return (
    <>
      <Badge tone={stateTones[state]}>{stateNames[state]}</Badge>
      {superseded && ' replaced by a newer mark'}
      {deadLetter && ' dead letter'}
    </>
  )
}

export function Retry({ retry }: Pick<RecordRow, 'retry'>) {
  return retry === 'resend' ? <>when it is sent again</> : <Time ms={retry} />
}

/** `30 records` */
export const countRecords = (count: number): string => counted(count, 'record')
