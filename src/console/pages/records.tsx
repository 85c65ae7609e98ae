import type { ComponentChildren } from 'preact'

import { describeCause, type RecordState, recordStates } from '../../journal/index.ts'
import type { BatchRow, RecordRow } from '../data/port.ts'
import { Badge, type Column, Id, table, Time, type Tone } from './parts.tsx'

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

export const outcomesOf = (batch: Pick<BatchRow, 'states'>) =>
  countsOf(batch).map(({ tone, text }) => <Badge tone={tone}>{text}</Badge>)

export const BatchLink = ({ batch, state }: Readonly<{ batch: number; state?: RecordState | undefined }>) => (
  <a href={`/batches/${batch}${state === undefined ? '' : `?state=${state}`}`}>{batch}</a>
)

/** Says what the operator should do about a record, or why to wait. Returns `undefined` for a confirmed record. */
export function nextActOf({ state, reason, superseded, deadLetter, retry }: RecordRow): ComponentChildren {
  if (state === 'confirmed') return undefined
  if (state === 'open') return 'Wait. The record is in flight.'
  if (superseded) return 'There is nothing to do. A newer mark of the same learner and event counts.'
  if (deadLetter || retry === undefined) return describeCause(state, reason).remedy
  if (retry === 'resend')
    return 'The client must resend the same batch. The adapter has told the client to do so.'
  return (
    <>
      Wait. The adapter tries to settle the record at <Time at={retry} />.
    </>
  )
}

/** Returns the value that stands for a record in a form with selected records. */
export const recordKey = ({ batch, position }: RecordRow): string => `${batch}.${position}`

const recordColumns = {
  part: ['Part', ({ batch, position }) => <a href={`/batches/${batch}/${position + 1}`}>{position + 1}</a>],
  batch: ['Batch', ({ batch }) => <BatchLink batch={batch} />],
  partner: ['Partner', ({ partner }) => partner],
  contentId: ['Content-ID', ({ contentId }) => <Id of={contentId} />],
  received: ['Received', ({ receivedMs }) => <Time at={receivedMs} />],
  state: [
    'State',
    ({ state, deadLetter }) => (
      <>
        <Badge tone={states[state][1]}>{states[state][0]}</Badge> {deadLetter && 'dead letter'}
      </>
    ),
  ],
  cause: ['Cause', ({ state, reason }) => reason && `${describeCause(state, reason).cause} (${reason})`],
  act: ['What to do', nextActOf],
  choice: [
    'Choose',
    (record) => (
      <input
        type="checkbox"
        name="record"
        value={recordKey(record)}
        aria-label={`Part ${record.position + 1} of batch ${record.batch}`}
      />
    ),
  ],
} as const satisfies Readonly<Record<string, Column<RecordRow>>>

export const tableOfRecords = (...names: readonly (keyof typeof recordColumns)[]) =>
  table<RecordRow>(
    'Records',
    'There are no such records.',
    names.map((name) => recordColumns[name]),
  )
