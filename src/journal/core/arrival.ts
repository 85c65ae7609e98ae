import type { KnownBatch, NewBatch } from '../journal.ts'
import { MAX_SAME_IDS } from '../sql.ts'
import type { ChangeContext } from './rows.ts'

/** A batch with the ids of another one, as the tables have it. */
export interface SameIds {
  readonly batch: number
  readonly onV2: number
  /** In hexadecimal. */
  readonly content: string
  readonly receivedMs: number
  readonly open: number
  readonly answered: number
}

/** How long a batch is recognised. */
export type Recognition = Pick<ChangeContext, 'replayForMs' | 'forgottenBatch'>

/** The meaning of earlier batches with the same ids for an arriving batch. */
interface Arrival {
  /** It is a resend of this one. */
  readonly known: KnownBatch | undefined
  /** Of the batch whose place it takes: those that were begun for V2 before. */
  readonly others: Pick<KnownBatch, 'earlier' | 'isCut'>
  /** An earlier batch has its ids and other bytes. */
  readonly idsReused: boolean
  /**
   * Their client had the whole reply to these bytes before it used the ids for others: they are a new batch from now on. Or the batch
   * takes their place.
   */
  readonly retired: readonly number[]
}

export const toHex = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('hex')

/** Decides which batch is the same. `earlier`: batches of the same owner and ids that are not retired, the newest first. */
export function judgeArrival(
  arriving: Pick<NewBatch, 'receivedMs' | 'side' | 'instead' | 'resendOf' | 'content'>,
  { replayForMs, forgottenBatch }: Recognition,
  earlier: readonly SameIds[],
): Arrival {
  const { side, instead = 0, resendOf = Infinity } = arriving
  const content = toHex(arriving.content)
  const recent = earlier.filter(
    (one) => one.batch > forgottenBatch || Math.round(arriving.receivedMs) - one.receivedMs < replayForMs,
  )
  const isReplaced = (one: SameIds): boolean => one.onV2 === 1 && one.batch <= instead
  const same = recent.filter((one) => one.content === content)
  const others = recent.filter((one) => one.content !== content)
  const mayAnswer = (one: SameIds): boolean => side === undefined || one.onV2 === 0 || one.batch > resendOf
  const found = same.find((one) => !isReplaced(one) && mayAnswer(one))
  const latest = found?.batch ?? instead
  const begunForV2 = same.filter((one) => one.onV2 === 1 && one.batch !== latest)
  // Their client had the answer to all requests with the same bytes.
  const isAnswered = (one: SameIds): boolean =>
    others.some(
      ({ answered, batch, content: own }) => answered === 1 && batch >= one.batch && own === one.content,
    )
  const retired = [...(found === undefined ? same.filter(isReplaced) : []), ...others.filter(isAnswered)]
  const numbersOf = (batches: readonly SameIds[]): number[] => batches.map(({ batch }) => batch)
  const before = {
    earlier: begunForV2.length === 0 ? undefined : numbersOf(begunForV2),
    isCut: earlier.length >= MAX_SAME_IDS ? true : undefined,
  }
  return {
    known: found && {
      kind: 'known',
      batch: found.batch,
      running: found.open > 0,
      side: found.onV2 === 1 ? 'v2' : undefined,
      ...before,
    },
    others: before,
    idsReused: others.length > 0,
    retired: numbersOf(retired),
  }
}
