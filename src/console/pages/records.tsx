import { type RecordState, recordStates } from '../../journal/index.ts'
import type { BatchRow, RecordRow } from '../data/port.ts'
import { Badge, type Column, Id, Time, type Tone } from './parts.tsx'

export const states: Readonly<Record<RecordState, readonly [name: string, tone: Tone]>> = {
  open: ['in flight', 'plain'],
  confirmed: ['confirmed', 'good'],
  refused: ['refused', 'bad'],
  unknown: ['unknown', 'note'],
  parked: ['parked', 'note'],
  notApplied: ['not applied', 'bad'],
}

export const isState = (text: string): text is RecordState => Object.hasOwn(states, text)

export const countsOf = ({ states: counts }: Pick<BatchRow, 'states'>) =>
  recordStates.flatMap((state) => {
    const [name, tone] = states[state]
    return counts[state] === 0 ? [] : [{ state, tone, text: `${counts[state].toLocaleString('en')} ${name}` }]
  })

export function Outcomes({ batch }: { readonly batch: Pick<BatchRow, 'states'> }) {
  return (
    <ul class="badges">
      {countsOf(batch).map(({ tone, text }) => (
        <li>
          <Badge tone={tone}>{text}</Badge>
        </li>
      ))}
    </ul>
  )
}

function State({ record: { state, superseded, deadLetter } }: { readonly record: RecordRow }) {
  const [name, tone] = states[state]
  return (
    <>
      <Badge tone={tone}>{name}</Badge>
      {superseded && ' replaced by a newer mark'}
      {deadLetter && ' dead letter'}
    </>
  )
}

export const BatchLink = ({ batch }: { readonly batch: number }) => <a href={`/batches/${batch}`}>{batch}</a>

export const recordColumns = {
  part: ['Part', ({ batch, position }) => <a href={`/batches/${batch}/${position + 1}`}>{position + 1}</a>],
  batch: ['Batch', ({ batch }) => <BatchLink batch={batch} />],
  partner: ['Partner', ({ partner }) => partner],
  contentId: ['Content-ID', ({ contentId }) => <Id of={contentId} />],
  received: ['Received', ({ receivedMs }) => <Time at={receivedMs} />],
  state: ['State', (record) => <State record={record} />],
  reason: ['Reason', ({ reason }) => reason],
  attempts: ['Attempts', ({ attempts }) => attempts],
  settled: ['Settled', ({ settledMs }) => <Time at={settledMs} />],
  next: [
    'Next try',
    ({ retry }) => (retry === 'resend' ? 'when the client resends it' : <Time at={retry} />),
  ],
  instance: ['Instance', ({ instance }) => String(instance)],
  remedy: ['Remedy', ({ remedy }) => remedy],
} as const satisfies Readonly<Record<string, Column<RecordRow>>>
