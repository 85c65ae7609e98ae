import type { BeginResult, NewBatch, ReopenResult, RecordRef, Settled } from '../journal.ts'
import { stateCodes, toRetryCode } from '../lifecycle.ts'
import type { ConfirmedMark } from './mark-hash.ts'

/** Outcomes by column: cheap to hand to another thread, and the form that PostgreSQL's `unnest` takes. */
export interface OutcomeColumns {
  readonly positions: readonly number[]
  readonly states: readonly number[]
  readonly retries: readonly (number | null)[]
  readonly reasons: readonly (string | null)[]
  readonly deadLetters: readonly number[]
  readonly superseded: readonly number[]
  readonly answers: readonly (string | undefined)[]
  readonly marks: readonly (ConfirmedMark | undefined)[]
}

/** `begin` as a store runs it. */
export interface BeginOperation {
  readonly kind: 'begin'
  readonly side: 'v2' | undefined
  readonly instead: number | undefined
  readonly resendOf: number | undefined
  readonly partner: string
  readonly owner: string
  readonly ids: Uint8Array | undefined
  readonly content: Uint8Array
  readonly receivedMs: number
  readonly payload: Uint8Array
  readonly credentials: string | undefined
  readonly newcomer: boolean
  readonly keys: readonly string[]
  /** Records that are refused from the start. */
  readonly refused: OutcomeColumns
}

/** `settle` as a store runs it. */
export interface SettleOperation extends OutcomeColumns {
  readonly kind: 'settle'
  readonly batch: number
  /** The lease under which the records were opened; undefined: whichever the instance has now. */
  readonly lease: number | undefined
}

/** `reopen` as a store runs it. */
export interface ReopenOperation {
  readonly kind: 'reopen'
  readonly batch: number
  readonly positions: readonly number[]
  readonly credentials: string | undefined
  /** Also where a checksum is wrong: they are opened to be ended. */
  readonly evenDamaged: boolean
  /** Open records that V2 serves forbid nothing. */
  readonly beforeRelay: boolean
}

/** `forget` as a store runs it. */
export interface ForgetOperation {
  readonly kind: 'forget'
  readonly batch: number
  readonly open: number
  readonly lease: number
}

/** Notes batches whose replies were written out whole. */
export interface AnsweredOperation {
  readonly kind: 'answered'
  readonly batches: readonly number[]
}

/** Changes nothing: its commit shows whether the store takes writes, and is the one of its mark. */
export interface ProbeOperation {
  readonly kind: 'probe'
}

/** One change of the journal. Those that wait together are made in one transaction. */
export type Operation =
  BeginOperation | SettleOperation | ForgetOperation | ReopenOperation | AnsweredOperation | ProbeOperation

/** What a `begin` found. `after`: position, batch and position of the nearest older open record, in threes. */
export type CommittedBegin =
  | {
      readonly kind: 'new'
      readonly batch: number
      /** The instance that owns it. */
      readonly lease: number
      readonly after: readonly number[]
      readonly receivedMs: number
      readonly idsReused: boolean
    }
  | Extract<BeginResult, { kind: 'known' }>

/** What a `reopen` did: the positions that are open now, and `after` as for `begin`. */
export interface CommittedReopen {
  /** The instance that owns what was opened. */
  readonly lease: number
  readonly opened: readonly number[]
  readonly after: readonly number[]
}

/** The result of an operation; the member has the name of its kind. */
export type OperationResult =
  | CommittedBegin
  | CommittedReopen
  /** A settle that must not count: another instance owns the batch, or it says something else than what is kept. */
  | 'lost'
  | 'done'

/** Puts outcomes into columns. */
export function toColumns(outcomes: readonly Settled[]): OutcomeColumns {
  const positions: number[] = []
  const states: number[] = []
  const retries: (number | null)[] = []
  const reasons: (string | null)[] = []
  const deadLetters: number[] = []
  const superseded: number[] = []
  const answers: (string | undefined)[] = []
  const marks: (ConfirmedMark | undefined)[] = []
  for (const outcome of outcomes) {
    positions.push(outcome.position)
    states.push(stateCodes[outcome.state])
    retries.push(toRetryCode(outcome.retry))
    reasons.push(toReason(outcome.reason))
    deadLetters.push(outcome.deadLetter === true ? 1 : 0)
    superseded.push(outcome.superseded === true ? 1 : 0)
    answers.push(outcome.answer)
    marks.push(outcome.mark)
  }
  return { positions, states, retries, reasons, deadLetters, superseded, answers, marks }
}

const MAX_REASON = 200

/** A reason may be a code of the service: PostgreSQL takes no text with a zero character. */
function toReason(reason: string | undefined): string | null {
  return reason?.replaceAll('\u0000', '').slice(0, MAX_REASON) ?? null
}

/** The operation of a new batch. */
export function toBegin(batch: NewBatch): BeginOperation {
  const refused: Settled[] = []
  const keys = batch.records.map((record, position) => {
    if (record.refused !== undefined) refused.push({ position, state: 'refused', ...record.refused })
    return record.key
  })
  const {
    side,
    instead,
    resendOf,
    partner,
    owner,
    ids,
    content,
    payload,
    credentials,
    newcomer = false,
  } = batch
  const receivedMs = Math.round(batch.receivedMs)
  return {
    kind: 'begin',
    side,
    instead,
    resendOf,
    partner,
    owner,
    ids,
    content,
    receivedMs,
    payload,
    credentials,
    newcomer,
    keys,
    refused: toColumns(refused),
  }
}

/** A position, and batch and position of an older open record. */
export type Three = readonly [position: number, batch: number, older: number]

/** What one record of each key waits for, for all of these records that follow it with the same key, as one list of threes. */
export function forAllOfKey(
  positions: Iterable<number>,
  keyOf: (position: number) => string | undefined,
  found: readonly Three[],
): readonly number[] {
  if (found.length === 0) return []
  const byKey = new Map(found.map((three) => [keyOf(three[0]), three]))
  const all: number[] = []
  for (const position of positions) {
    const three = byKey.get(keyOf(position))
    if (three !== undefined && three[0] <= position) all.push(position, three[1], three[2])
  }
  return all
}

const NOTHING: ReadonlyMap<number, readonly RecordRef[]> = new Map()

/** Threes as a map by position; those that wait for the same record share one list. */
export function toAfter(after: readonly number[]): ReadonlyMap<number, readonly RecordRef[]> {
  if (after.length === 0) return NOTHING
  const map = new Map<number, readonly RecordRef[]>()
  const lists = new Map<string, readonly RecordRef[]>()
  for (let at = 0; at + 2 < after.length; at += 3) {
    const [position, batch, older] = [after[at] ?? 0, after[at + 1] ?? 0, after[at + 2] ?? 0]
    const name = `${batch}/${older}`
    const list = lists.get(name) ?? [{ batch, position: older }]
    lists.set(name, list)
    map.set(position, list)
  }
  return map
}

/** The port's form of a `begin`. */
export function toBeginResult(result: CommittedBegin): BeginResult {
  if (result.kind === 'known') return result
  return { ...result, after: toAfter(result.after) }
}

/** The port's form of a `reopen`: every position that was opened is in it. */
export function toReopenResult({ lease, opened, after }: CommittedReopen): ReopenResult {
  const refs = toAfter(after)
  return { lease, after: new Map(opened.map((position) => [position, refs.get(position) ?? []])) }
}
