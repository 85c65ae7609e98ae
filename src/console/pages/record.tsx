import { AdapterError } from '../../errors.ts'
import type { RecordState } from '../../journal/index.ts'
import { notFound, numberOf, reasonOf, type Visit } from '../access/visit.ts'
import type { RecordRow } from '../data/port.ts'
import type { ConsolePorts, Explained, ExplainedField } from '../ports.ts'
import { State } from './batches.tsx'
import type { Page, Shown } from './page.ts'
import { Facts, Form, Reason, Section, Table, Time } from './parts.tsx'

/** One record: its outcome, and which rule made what of it. */
export const record: Page = {
  path: '/batches/:batch/:part',
  show: (visit, ports) => showRecord(visit, ports, false),
  act: async (visit, ports) => {
    const { actor } = visit
    if (!actor.reveal)
      throw new AdapterError(
        'ADP_FORBIDDEN',
        `${actor.name} may not see values: it takes reveal: true in rollout.operators.`,
      )
    const reason = reasonOf(visit)
    const { row } = await findRecord(visit, ports)
    await ports.stages.note(
      'reveal',
      actor.name,
      `${row.partner}: batch ${row.batch}, part ${row.position + 1}: ${reason}`,
    )
    return showRecord(visit, ports, true)
  },
}

async function findRecord(visit: Visit, { data }: ConsolePorts) {
  const [batch, part] = [numberOf(visit, 'batch'), numberOf(visit, 'part')]
  if ((await data.batch(batch, visit.scope)) === undefined) throw notFound('batch')
  const { records } = await data.records(batch, { from: part - 1, limit: 1 })
  const row = records.find(({ position }) => position === part - 1)
  if (row === undefined) throw notFound('record')
  return { batch, part, row }
}

async function showRecord(visit: Visit, ports: ConsolePorts, isRevealed: boolean): Promise<Shown> {
  const { batch, part, row } = await findRecord(visit, ports)
  const explained = await ports.explain(batch, part - 1, isRevealed)
  return {
    title: `Part ${part} of batch ${batch}`,
    json: { ...row, explained: explained ?? null },
    body: (
      <>
        <RecordFacts row={row} />
        <Section title="Body for V3">
          <Body explained={explained} />
        </Section>
        <Section title="Part of the reply">
          <p>{replyOf(row)}</p>
          <KeptPart explained={explained} />
        </Section>
        {visit.actor.reveal && !isRevealed && hasMasked(explained) && (
          <Form visit={visit} action={`/batches/${batch}/${part}`} label="Show the values">
            <Reason id="reveal-reason" />
            <button>Show the values</button>
          </Form>
        )}
      </>
    ),
  }
}

function hasMasked(explained: Explained | undefined): boolean {
  if (explained === undefined || explained.kind === 'unreadable') return false
  return explained.kind === 'posted' || (explained.reply?.fields ?? []).some(({ isMasked }) => isMasked)
}

function RecordFacts({ row }: { readonly row: RecordRow }) {
  const { batch, partner, receivedMs, settledMs, contentId, reason, attempts, instance, remedy } = row
  return (
    <section aria-label="Facts">
      <Facts
        of={[
          ['Batch', <a href={`/batches/${batch}`}>{batch}</a>],
          ['Partner', partner],
          ['State', <State record={row} />],
          ['Reason', reason ?? '–'],
          ['Content-ID', contentId ?? '–'],
          ['Received (UTC)', <Time ms={receivedMs} />],
          ['Settled (UTC)', <Time ms={settledMs} />],
          ['Attempts', attempts],
          ['Instance', instance],
        ]}
      />
      {remedy !== undefined && <p class="notice note">{remedy}</p>}
    </section>
  )
}

function Body({ explained }: { readonly explained: Explained | undefined }) {
  if (explained === undefined) return <p class="empty">Nothing is known of its request.</p>
  if (explained.kind === 'unreadable') return <p class="empty">{explained.why}</p>
  if (explained.kind === 'refused')
    return (
      <>
        <p>The adapter refused it, so that no body was made:</p>
        <ul class="list">
          {explained.faults.map(({ code, message }) => (
            <li>
              <code>{code}</code> {message}
            </li>
          ))}
        </ul>
      </>
    )
  const { fields, unmapped, unmappedFields } = explained
  return (
    <>
      <p class="soft">By the settings of the partner as they are now.</p>
      <Fields caption="Members of the V3 body" source="From V2" fields={fields} />
      {unmapped > 0 && (
        <p>
          {unmapped} further {unmapped === 1 ? 'member' : 'members'} of the V2 record:{' '}
          <code>unmappedFields: {unmappedFields}</code>.
        </p>
      )}
    </>
  )
}

/** By which rule the client got its part (writes/reply). */
function replyOf({ state, reason, superseded }: RecordRow): string {
  if (superseded) return '409: a newer mark of the same learner and event took its place.'
  return replies[state](reason ?? 'none')
}

const replies: Readonly<Record<RecordState, (reason: string) => string>> = {
  confirmed: () => '201, with the flat record of the mark.',
  refused: (reason) =>
    reason === 'fault'
      ? '400, with the finding of the adapter.'
      : `The error array of V2, made of V3's error by the first rule that fits; its cause is ${reason}.`,
  unknown: (reason) => `504 ADP_OUTCOME_UNKNOWN: no answer of V3 tells what became of it (${reason}).`,
  parked: (reason) => `The client has its answer already; the background tries the record again (${reason}).`,
  open: () => 'None yet: it is in flight.',
}

/** What the journal keeps of the answer, member by member. */
function KeptPart({ explained }: { readonly explained: Explained | undefined }) {
  const none = explained === undefined || explained.kind === 'unreadable'
  if (none) return <p class="empty">What was answered is not kept, or cannot be read.</p>
  const { reply } = explained
  if (reply === undefined) return <p class="empty">The journal keeps no part of its own for it.</p>
  return (
    <>
      <p>
        The part that is kept: <code>{reply.status}</code>
        {reply.fields.length === 0 && ', without a body'}
      </p>
      {reply.fields.length > 0 && (
        <Fields caption="Members of the kept part" source="From V3" fields={reply.fields} />
      )}
    </>
  )
}

interface FieldsProps {
  readonly caption: string
  /** What the members come from. */
  readonly source: string
  readonly fields: readonly ExplainedField[]
}

function Fields({ caption, source, fields }: FieldsProps) {
  return (
    <Table
      caption={caption}
      rows={fields}
      columns={[
        ['Member', ({ path }) => <code>{path}</code>],
        [source, ({ from }) => (from === undefined ? '–' : <code>{from}</code>)],
        ['Rule', ({ rule }) => rule],
        ['Value', ({ value, isMasked }) => (isMasked ? <em class="soft">{value}</em> : <code>{value}</code>)],
      ]}
      empty="The body has no member."
    />
  )
}
