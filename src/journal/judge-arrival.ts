import type { NewBatch } from './journal.ts'
import type { SummedBatch } from './schema/row-sums.ts'
import { toSide } from './side.ts'
import { expectIntactBatch } from './store/damage.ts'

/** A batch with the ids of another one, as the tables have it. */
export interface SameIds {
  readonly batch: number
  readonly side: 'v2' | undefined
  readonly content: Uint8Array
  readonly receivedMs: number
  readonly running: boolean
  readonly answered: boolean
}

/** Reads the row of such a batch. Error: `ADP_JOURNAL_DAMAGED` where it is not as it was written. */
export function toSameIds(row: SummedBatch & { readonly id: number; readonly sum: number | null }): SameIds {
  expectIntactBatch(row.id, row)
  return {
    batch: row.id,
    side: toSide(row.side),
    content: row.content,
    receivedMs: row.received_ms,
    running: row.open > 0,
    answered: row.answered === 1,
  }
}

/** Adds batches to those of a name, each once: the newest first among those of the same content. */
export function addSameIds(all: Map<string, SameIds[]>, name: string, found: readonly SameIds[]): void {
  const known = all.get(name) ?? []
  all.set(name, [...known, ...found.filter((one) => known.every(({ batch }) => batch !== one.batch))])
}

/** The batches that one retires, as the tables have them. */
export function toNumbers(retires: string | null): readonly number[] | null {
  const parsed = retires === null ? null : (JSON.parse(retires) as unknown)
  return Array.isArray(parsed) ? parsed.map(Number) : null
}

/** The meaning of earlier batches with the same ids for an arriving batch. */
export interface Arrival {
  /** It is a resend of this one. */
  readonly known: SameIds | undefined
  /** Without `known`, and without the one whose place the batch takes: see `BeginResult`. */
  readonly earlier: readonly number[] | undefined
  readonly isCut: true | undefined
  /** An earlier batch has its ids and other bytes. */
  readonly idsReused: boolean
  /**
   * Their client had the whole reply to these bytes before it used the ids for others: they are a new batch from now on. Or the batch
   * takes their place.
   */
  readonly retired: readonly number[]
}

/** Batches of one owner with the same ids that are looked through, the newest first. */
export const MAX_SAME_IDS = 100

/** How long a batch is recognised. */
export interface Recognition {
  readonly replayForMs: number
  /** Batches with a higher number are recognised whatever the wall clock says. */
  readonly forgottenBatch: number
}

/** An arriving batch, as far as its side and bytes go. */
export type Arriving = Pick<NewBatch, 'content' | 'receivedMs' | 'side' | 'instead' | 'resendOf'>

/** Decides which batch is the same. `earlier`: batches of the same owner and ids that are not retired, the newest first. */
export function judgeArrival(
  { content, receivedMs, side, instead = 0, resendOf = Infinity }: Arriving,
  { replayForMs, forgottenBatch }: Recognition,
  earlier: readonly SameIds[],
): Arrival {
  const recent = earlier.filter(
    (one) => one.batch > forgottenBatch || receivedMs - one.receivedMs < replayForMs,
  )
  const isSame = (one: SameIds): boolean => Buffer.compare(content, one.content) === 0
  const isReplaced = (one: SameIds): boolean => one.side === 'v2' && one.batch <= instead
  const same = recent.filter(isSame)
  const others = recent.filter((one) => !isSame(one))
  const mayAnswer = (one: SameIds): boolean =>
    side === undefined || one.side === undefined || one.batch > resendOf
  const known = same.find((one) => !isReplaced(one) && mayAnswer(one))
  const latest = known?.batch ?? instead
  const begunForV2 = same.filter((one) => one.side === 'v2' && one.batch !== latest)
  // Their client had the answer to all requests with the same bytes.
  const isAnswered = (one: SameIds): boolean =>
    others.some(
      ({ answered, batch, content: own }) =>
        answered && batch >= one.batch && Buffer.compare(own, one.content) === 0,
    )
  const retired = [...(known === undefined ? same.filter(isReplaced) : []), ...others.filter(isAnswered)]
  const numbersOf = (batches: readonly SameIds[]): number[] => batches.map(({ batch }) => batch)
  return {
    known,
    earlier: begunForV2.length === 0 ? undefined : numbersOf(begunForV2),
    isCut: earlier.length >= MAX_SAME_IDS ? true : undefined,
    idsReused: others.length > 0,
    retired: numbersOf(retired),
  }
}
