import type { ComponentChildren } from 'preact'

import { formatCounted, formatDuration } from '../../compare/report/format.ts'
import { describeCause } from '../../journal/index.ts'
import { forbidden, notFound, numberOf, reasonOf, type Visit } from '../access/visit.ts'
import type { RecordRow } from '../data/port.ts'
import type { ConsolePorts, Explained, ExplainedField } from '../ports.ts'
import { formatStep } from './batch.tsx'
import type { Page, Shown } from './page.ts'
import { Facts, Form, Id, Notice, PartnerLink, reasonField, Section, table, Time } from './parts.tsx'
import { BatchLink, nextActOf, states } from './records.tsx'

/** Shows what became of a record, what to do, when it happened, and the rules by which its body and its reply were made. */
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
    const { partner, batch, position } = (await findRecord(visit, ports)).row
    const what = `${partner}: batch ${batch}, part ${position + 1}: ${reason}`
    await ports.stages.recordAction('reveal', actor.name, what)
    return showRecord(visit, ports, true)
  },
}

async function findRecord(visit: Visit, { data }: ConsolePorts) {
  const [batch, part] = [numberOf(visit, 'batch'), numberOf(visit, 'part')]
  const details = await data.batch(batch, visit.scope)
  if (details === undefined) throw notFound('batch')
  const { records } = await data.records(batch, { from: part - 1, limit: 1 })
  const row = records.find(({ position }) => position === part - 1)
  if (row === undefined) throw notFound('record')
  const steps = details.timeline.filter(
    ({ positions }) =>
      positions.length === 0 || positions.some(([from, to]) => from <= row.position && row.position <= to),
  )
  return { row, details, steps }
}

async function showRecord(visit: Visit, ports: ConsolePorts, isRevealed: boolean): Promise<Shown> {
  const found = await findRecord(visit, ports)
  const { row } = found
  const { batch, position, partner, contentId, state } = row
  const explained = await ports.explain(batch, position, isRevealed)
  const { notes = ['The journal has no request for this record.'], fields = [], reply } = explained ?? {}
  const isMasked = [...fields, ...(reply?.fields ?? [])].some((field) => field.isMasked)
  const codes = codesOf(row, explained)
  const title = `Part ${position + 1} of batch ${batch}`
  const note = <p class="soft">{notes.join(' ')}</p>
  return {
    title,
    status: `${states[state][0]} · ${title}`,
    json: { ...row, codes, steps: found.steps, explained: explained ?? null },
    body: (
      <>
        <Notice tone={states[state][1]} what={sentenceOf(found, codes)} remedy={actOf(row, codes)} />
        {fields.length === 0 && note}
        <Facts
          of={[
            ['Batch', <BatchLink batch={batch} />],
            ['Partner', <PartnerLink id={partner} />],
            ['Content-ID', <Id of={contentId} />],
          ]}
        />
        <Section title="Timeline">{timeTable(momentsOf(found, reply?.status))}</Section>
        {fields.length > 0 && (
          <details open={isRevealed}>
            <summary>Which rule made each member of the body for V3</summary>
            {note}
            {fieldTable('Members of the V3 body', 'From V2')(fields)}
          </details>
        )}
        {reply && (
          <details open={isRevealed}>
            <summary>Which rule made each member of the reply</summary>
            {fieldTable('Members of the stored part', 'From V3')(reply.fields)}
          </details>
        )}
        {visit.actor.reveal && isMasked && (
          <Form id="reveal" label="Show the values" fields={[reasonField]} />
        )}
      </>
    ),
  }
}

type FoundRecord = Awaited<ReturnType<typeof findRecord>>

/** Returns the codes of a refusal: those of the stored part of the reply, or otherwise the first code, which the journal keeps longer. */
function codesOf({ state, reason }: RecordRow, explained: Explained | undefined): readonly string[] {
  const stored = (explained?.reply?.fields ?? []).filter(({ path }) => path.endsWith('/ErrorCode'))
  if (state !== 'refused' || stored.length === 0) return reason === undefined ? [] : [reason]
  return stored.map(({ value }) => value.replaceAll('"', ''))
}

/** Says what to do about a record. A refusal with several codes gets the remedy of each code. */
function actOf(row: RecordRow, codes: readonly string[]): ComponentChildren {
  if (row.state !== 'refused' || row.superseded || codes.length < 2) return nextActOf(row)
  return [...new Set(codes.map((code) => describeCause('refused', code).remedy))].join(' ')
}

function sentenceOf({ row, details, steps }: FoundRecord, codes: readonly string[]): string {
  const { state, reason, superseded } = row
  const name = states[state][0]
  const word = `${name.charAt(0).toUpperCase()}${name.slice(1)}`
  if (state === 'open') return `${word}: the client has no reply yet.`
  if (state === 'confirmed') {
    const isFound = steps.some(({ kind }) => kind === 'readBack')
    return `${word}: ${details.servedBy.toUpperCase()} has the mark.${isFound ? ' The outcome was unclear at first, so the adapter looked the mark up in V3.' : ''}`
  }
  const known = codes.filter((code) => !code.startsWith('ADP_'))
  const causes = new Set(
    (known.length > 0 ? known : [reason]).map((code) => describeCause(state, code).cause),
  )
  const newer = superseded ? ' A newer mark of the same learner and event replaced the record.' : ''
  return `${word}: ${[...causes].join(', and ')} (${codes.join(', ')}).${newer}`
}

interface Moment {
  readonly what: string
  /** The time of the event, or `undefined` if the journal does not store the time. */
  readonly atMs?: number
  readonly lastMs?: number
  readonly waitMs?: number | undefined
  readonly cause?: string | undefined
}

/** Returns the events of a record, oldest first. The journal stores no time of a POST or of a reply. */
function momentsOf({ row, details, steps }: FoundRecord, status: number | undefined): readonly Moment[] {
  const { receivedMs, settledMs, state, reason, attempts } = row
  const isSent =
    state === 'confirmed' || state === 'unknown' || (state === 'refused' && !unsent.has(reason ?? ''))
  const timed: readonly (Moment & { readonly atMs: number })[] = [
    { what: 'received, and stored in the journal', atMs: receivedMs },
    // Leaves out the step `recovered`, because the settlement below says the same.
    ...steps
      .filter(({ kind }) => kind !== 'recovered')
      .map((step) => ({
        ...{ ...step, what: formatStep(step) },
        cause: step.reason === undefined ? undefined : describeCause(state, step.reason).cause,
      })),
    // Adds no settlement if a step `unknown` or `parked` already shows it.
    ...(settledMs === undefined || steps.some(({ kind }) => kind === state)
      ? []
      : [{ what: `settled as ${states[state][0]}`, atMs: settledMs }]),
  ].toSorted((one, other) => one.atMs - other.atMs)
  const moments = timed.map((one, at): Moment => ({
    ...one,
    waitMs: at === 0 ? undefined : one.atMs - (timed[at - 1]?.atMs ?? 0),
  }))
  const posted = {
    what: `posted to ${details.servedBy.toUpperCase()}, ${formatCounted(attempts, 'attempt')}`,
  }
  const told = details.answered ? 'reply sent completely' : 'reply not sent completely'
  const last = { what: status === undefined ? told : `${told}, with status ${status} for this part` }
  return [...moments.toSpliced(1, 0, ...(isSent ? [posted] : [])), last]
}

/** The reasons for which the adapter refuses a record without sending it. */
const unsent: ReadonlySet<string> = new Set(['fault', 'dropped'])

const formatWait = (ms: number): string =>
  ms < 10_000 ? `${(ms / 1_000).toFixed(ms < 1_000 ? 3 : 1)} s` : formatDuration(ms)

const timeTable = table<Moment>('Timeline', '', [
  ['What happened', ({ what }) => what],
  ['Time', ({ atMs }) => (atMs === undefined ? 'not stored' : <Time at={atMs} />)],
  ['Last', ({ atMs, lastMs = atMs }) => lastMs !== atMs && <Time at={lastMs} />],
  ['After', ({ waitMs }) => (waitMs === undefined ? undefined : formatWait(waitMs))],
  ['Cause', ({ cause }) => cause],
])

const fieldTable = (caption: string, source: string) =>
  table<ExplainedField>(caption, '', [
    ['Member', ({ path }) => <code>{path}</code>],
    [source, ({ from }) => from && <code>{from}</code>],
    ['Rule', ({ rule }) => rule],
    ['Value', ({ value, isMasked }) => (isMasked ? <em class="soft">{value}</em> : <code>{value}</code>)],
  ])
