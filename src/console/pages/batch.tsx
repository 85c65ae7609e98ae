import { formatCount } from '../../compare/report/format.ts'
import { notFound, numberOf } from '../access/visit.ts'
import type { Step, StepKind } from '../data/port.ts'
import type { Page } from './page.ts'
import { Facts, Id, Pager, PartnerLink, Section, table, Tabs, Time } from './parts.tsx'
import { countsOf, isState, tableOfRecords } from './records.tsx'

const PAGE = 100

export const batch: Page = {
  path: '/batches/:batch',
  show: async (visit, { data }) => {
    const number = numberOf(visit, 'batch')
    const { query, scope } = visit
    const [after, given] = [query.get('after') ?? '', query.get('state') ?? '']
    const from = /^\d{1,9}$/.test(after) ? Number(after) : 0
    const state = isState(given) ? given : undefined
    const details = await data.batch(number, scope)
    if (details === undefined) throw notFound('batch')
    const { records, next } = await data.records(number, { from, limit: PAGE, state })
    const counts = countsOf(details).map((one) => [one.state, one.text] as const)
    const tabs = [[undefined, `${formatCount(details.records)} in total`] as const, ...counts]
    return {
      title: `Batch ${number}`,
      status: `${counts.map(([, text]) => text).join(', ')} · Batch ${number}`,
      json: { ...details, page: { from, records, next } },
      body: (
        <>
          <Section title="Request and reply">
            <Facts
              of={[
                ['Partner', <PartnerLink id={details.partner} />],
                ['Received', <Time at={details.receivedMs} />],
                ['Served by', details.servedBy.toUpperCase()],
                ['Reply', details.answered ? 'sent completely' : 'not sent completely'],
                ['Batch id of the client', <Id of={details.boundary} />],
              ]}
            />
          </Section>
          <Section title="Exceptional steps">{timeline(details.timeline)}</Section>
          <Section title="Records">
            <Tabs label="State" name="state" tabs={tabs} current={state} />
            {recordTable(records)}
          </Section>
          <Pager query={query} next={next} />
        </>
      ),
    }
  },
}

const recordTable = tableOfRecords('part', 'contentId', 'state', 'cause', 'act')

const stepTexts: Readonly<Record<StepKind, string>> = {
  replayed: 'resent by the client and answered from the journal',
  joined: 'resent by the client while in progress',
  retried: 'retried',
  readBack: 'looked up in V3',
  unknown: 'settled as unknown',
  parked: 'parked',
  superseded: 'replaced by a newer mark',
  takenOver: 'taken over from another instance',
  recovered: 'settled in a final state',
}

export const formatStep = ({ kind, times }: Step): string =>
  `${stepTexts[kind]}${times > 1 ? `, ${formatCount(times)} times` : ''}`

const timeline = table<Step>('Exceptional steps, oldest first', 'The batch had no exceptional steps.', [
  ['Time', ({ atMs }) => <Time at={atMs} />],
  ['Step', formatStep],
  ['Last', ({ times, lastMs }) => times > 1 && <Time at={lastMs} />],
  ['Parts', ({ positions }) => positions.map(formatRange).join(', ') || 'all'],
  ['Reason', (step) => step.reason],
  ['Instance', (step) => step.instance?.toString()],
])

const formatRange = ([from, to]: Step['positions'][number]): string =>
  from === to ? `${from + 1}` : `${from + 1} to ${to + 1}`
