import type { RecordState } from '../../journal/index.ts'
import { forbidden, notFound, numberOf, reasonOf, type Visit } from '../access/visit.ts'
import type { RecordRow } from '../data/port.ts'
import type { ConsolePorts, Explained, ExplainedField } from '../ports.ts'
import type { Page, Shown } from './page.ts'
import { Facts, Form, List, reasonField, Section, table } from './parts.tsx'
import { recordColumns } from './records.tsx'

/** Shows the rules by which the members of the V3 body and of the reply of a record were translated. */
export const record: Page = {
  path: '/batches/:batch/:part',
  show: (visit, ports) => showRecord(visit, ports, false),
  act: async (visit, ports) => {
    const { actor } = visit
    if (!actor.reveal)
      throw forbidden(
        `${actor.name} may not see values. No value was shown. Set reveal: true for the operator in rollout.operators.`,
      )
    const reason = reasonOf(visit)
    const { partner, batch, position } = await findRecord(visit, ports)
    const what = `${partner}: batch ${batch}, part ${position + 1}: ${reason}`
    await ports.stages.recordAction('reveal', actor.name, what)
    return showRecord(visit, ports, true)
  },
}

async function findRecord(visit: Visit, { data }: ConsolePorts): Promise<RecordRow> {
  const [batch, part] = [numberOf(visit, 'batch'), numberOf(visit, 'part')]
  if ((await data.batch(batch, visit.scope)) === undefined) throw notFound('batch')
  const { records } = await data.records(batch, { from: part - 1, limit: 1 })
  const row = records.find(({ position }) => position === part - 1)
  if (row === undefined) throw notFound('record')
  return row
}

async function showRecord(visit: Visit, ports: ConsolePorts, isRevealed: boolean): Promise<Shown> {
  const row = await findRecord(visit, ports)
  const { batch, position, remedy } = row
  const explained = await ports.explain(batch, position, isRevealed)
  const { notes, fields, reply } = explained ?? unknown
  const isMasked = [...fields, ...(reply?.fields ?? [])].some((field) => field.isMasked)
  return {
    title: `Part ${position + 1} of batch ${batch}`,
    json: { ...row, explained: explained ?? null },
    body: (
      <>
        <Section title="Outcome">
          <Facts of={facts.map(([name, cell]) => [name, cell(row)])} />
          {remedy !== undefined && <p class="notice note">{remedy}</p>}
        </Section>
        <Section title="Body for V3">
          <List of={notes} />
          {fieldTable('Members of the V3 body', 'From V2')(fields)}
        </Section>
        <Section title="Part of the reply">
          <p>{replyOf(row)}</p>
          <p>
            {reply ? `The stored part has the status ${reply.status}.` : 'No part of the reply is stored.'}
          </p>
          {fieldTable('Members of the stored part', 'From V3')(reply?.fields ?? [])}
        </Section>
        {visit.actor.reveal && isMasked && (
          <Form visit={visit} id="reveal" label="Show the values" fields={[reasonField]} />
        )}
      </>
    ),
  }
}

const unknown: Explained = {
  notes: ['The journal has no request for this record.'],
  fields: [],
  reply: undefined,
}

const { batch, partner, state, reason, contentId, received, settled, attempts, instance } = recordColumns
const facts = [batch, partner, state, reason, contentId, received, settled, attempts, instance]

/** Describes the rule of `writes/reply` that chose the part for the client. */
function replyOf({ state: own, reason: cause = 'none', superseded }: RecordRow): string {
  if (superseded) return '409: a newer mark of the same learner and event replaced this mark.'
  return replies[own](cause)
}

const replies: Readonly<Record<RecordState, (reason: string) => string>> = {
  confirmed: () => '201, with the flat record of the mark.',
  refused: (cause) =>
    cause === 'fault'
      ? '400, with the fault that the adapter found in the record.'
      : `The error array of V2, made from the error of V3 by the first matching rule; the cause is ${cause}.`,
  unknown: (cause) =>
    `504 ADP_OUTCOME_UNKNOWN: no response of V3 shows whether the record was applied (${cause}).`,
  parked: (cause) => `The client already has its reply. The record is retried in the background (${cause}).`,
  notApplied: (cause) =>
    `503, or the 401 or 403 that V3 answered, because V3 did not process the record (${cause}).`,
  open: () => 'The client has no reply yet, because the record is in flight.',
}

const fieldTable = (caption: string, source: string) =>
  table<ExplainedField>(caption, 'There are no members.', [
    ['Member', ({ path }) => <code>{path}</code>],
    [source, ({ from }) => from && <code>{from}</code>],
    ['Rule', ({ rule }) => rule],
    ['Value', ({ value, isMasked }) => (isMasked ? <em class="soft">{value}</em> : <code>{value}</code>)],
  ])
