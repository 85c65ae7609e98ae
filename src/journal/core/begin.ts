import type { BeginResult, KnownBatch, NewBatch, Predecessors, RecordRef } from '../journal.ts'
import { recordStates, stateCodes, toStateColumns } from '../lifecycle.ts'
import { packAnswers } from '../seal.ts'
import { MAX_SAME_IDS } from '../sql.ts'
import { addToTotal, type BatchRows, type ByKey, bytesOf, type ChangeContext, toReason } from './rows.ts'

/** An earlier batch that has the same ids as the arriving batch. */
export interface SameIds {
  readonly batch: number
  readonly onV2: number
  /** The SHA-256 of the content, in hexadecimal. */
  readonly content: string
  readonly receivedMs: number
  readonly ageMs: number
  readonly open: number
  readonly answered: number
}

export interface Beginning {
  readonly batch: NewBatch
  readonly hasRoom: boolean
  readonly keys: readonly string[]
}

interface BeginRows {
  /**
   * For each arriving batch, the stored batches with the same owner and ids that are not retired. Batches with the same content come first,
   * and among them the newest.
   */
  readonly sameIds: readonly (readonly SameIds[])[]
  readonly lastBatch: number
  /** The time of receipt of the newest batch, in milliseconds since the epoch, or 0 if the journal has no batch. */
  readonly latestMs: number
  readonly newestOpen: ByKey
  /**
   * The stored batch that the arriving batch replaces. `undefined` if the arriving batch replaces no batch, or if the journal no longer
   * stores the replaced batch.
   */
  readonly replaced?: (BatchRows & { readonly standing: ByKey }) | undefined
}

export function begin(
  context: ChangeContext,
  beginnings: readonly Beginning[],
  rows: BeginRows,
): readonly (BeginResult | 'full')[] {
  const { changes, instance } = context
  const begun: (SameIds & { readonly name: string })[] = []
  const newestOpen = new Map(rows.newestOpen)
  const retired = new Set<number>()
  let { latestMs, lastBatch } = rows
  return beginnings.map((beginning, index): BeginResult | 'full' => {
    const { batch, hasRoom } = beginning
    const name = batch.ids === undefined ? undefined : `${toHex(batch.ids)} ${batch.owner}`
    const earlier = [
      ...begun.filter((one) => one.name === name).reverse(),
      ...(rows.sameIds[index] ?? []),
    ].filter((one) => !retired.has(one.batch))
    const { known, others, idsReused, retired: answered } = judgeArrival(batch, context, earlier)
    const newer = known === undefined ? newerThan(rows.replaced, beginning) : undefined
    if (newer !== undefined)
      return { kind: 'known', batch: batch.replacesBatch ?? 0, running: false, side: 'v2', ...others, newer }
    if (known === undefined && !hasRoom) return 'full'
    // A newcomer's batch retires other batches of the owner only once the newcomer's credentials are accepted.
    const isNewcomer = batch.newcomer === true
    if (!isNewcomer) {
      for (const one of answered) retired.add(one)
      changes.retired.push(...answered)
    }
    if (known !== undefined) return known
    lastBatch += 1
    // Keeps the time of receipt from decreasing when a clock is set back, because a later mark must not have an earlier time.
    latestMs = Math.max(latestMs, Math.round(batch.receivedMs))
    const open = batch.records.filter(({ refused }) => refused === undefined).length
    const own = {
      batch: lastBatch,
      onV2: batch.side === 'v2' ? 1 : 0,
      content: toHex(batch.content),
      receivedMs: latestMs,
      ageMs: context.ageMs,
      open,
      answered: 0,
    }
    if (name !== undefined) begun.push({ name, ...own })
    insert(context, beginning, own, isNewcomer ? answered : [])
    const after = predecessorsOf(lastBatch, beginning, newestOpen)
    return { kind: 'new', batch: lastBatch, lease: instance, after, receivedMs: latestMs, idsReused }
  })
}

/**
 * Returns the open or unknown records that are newer than the replaced batch and have the same keys. The new batch must not be posted over
 * these records. The list is empty if newer records were confirmed and superseded records of the replaced batch. Returns `undefined` if
 * there are no newer records, or if the numbers of records differ.
 */
function newerThan(
  replaced: BeginRows['replaced'],
  { batch: { records, replacesBatch = 0 } }: Beginning,
): readonly RecordRef[] | undefined {
  if (replaced === undefined || replaced.records.length !== records.length) return undefined
  const sent = replaced.records.filter(({ position }) => records[position]?.refused === undefined)
  const newer = sent.flatMap(({ key }) => {
    const standing = replaced.standing.get(key)
    return standing === undefined || standing.batch <= replacesBatch ? [] : [standing]
  })
  return newer.length > 0 || sent.some(({ superseded }) => superseded === 1) ? newer : undefined
}

function insert(
  { instance, hasKey, nowMs, ageMs, changes }: ChangeContext,
  { batch: given, keys }: Beginning,
  { batch, receivedMs, open }: Pick<SameIds, 'batch' | 'receivedMs' | 'open'>,
  retires: readonly number[],
): void {
  const { partner, owner, ids, content, payload, credentials, records } = given
  const counts = recordStates.map((state) => (state === 'open' ? open : state === 'refused' ? records.length - open : 0)) // prettier-ignore
  changes.batches.push({
    id: batch,
    partner,
    owner,
    ids: ids === undefined ? null : toHex(ids),
    content: toHex(content),
    received_ms: receivedMs,
    age_ms: Math.floor(ageMs),
    instance,
    ...toStateColumns(counts),
    active: open,
    on_v2: given.side === 'v2' ? 1 : 0,
    newcomer: given.newcomer === true ? 1 : 0,
    retires: JSON.stringify(retires),
    bytes: bytesOf(given),
  })
  changes.records.push({ batch, keys })
  records.forEach(({ refused }, position) => {
    if (refused === undefined) return
    const ended = { retry: null, dead_letter: 0, superseded: 0, mark: null, settled_ms: nowMs }
    const state = stateCodes.refused
    changes.outcomes.push({ batch, position, state, active: 0, reason: toReason(refused.reason), ...ended })
  })
  changes.blobs.push({ kind: 'payload', batch, owner, plain: payload })
  if (hasKey && credentials !== undefined && open > 0)
    changes.blobs.push({ kind: 'credentials', batch, owner, plain: Buffer.from(credentials) })
  const pack = packAnswers(records.map(({ refused }, position) => ({ position, answer: refused?.answer })))
  if (pack !== undefined) changes.blobs.push({ kind: 'answers', batch, owner, plain: pack })
  counts.forEach((n, state) => addToTotal(changes, partner, state, n))
}

/** Maps each position to the nearest older open record of the same key in an earlier batch. Records of the same key get the same list. */
function predecessorsOf(
  number: number,
  { batch: { records }, keys }: Beginning,
  newestOpen: Map<string, RecordRef>,
): Predecessors {
  const after = new Map<number, readonly RecordRef[]>()
  const lists = new Map<string, readonly RecordRef[] | undefined>()
  records.forEach(({ refused }, position) => {
    if (refused !== undefined) return
    const key = keys[position] ?? ''
    if (!lists.has(key)) {
      const older = newestOpen.get(key)
      lists.set(key, older && [older])
    }
    const list = lists.get(key)
    if (list !== undefined) after.set(position, list)
    newestOpen.set(key, { batch: number, position })
  })
  return after
}

interface Arrival {
  readonly known: KnownBatch | undefined
  readonly others: Pick<KnownBatch, 'earlier' | 'isCut'>
  readonly idsReused: boolean
  /**
   * The batches that the journal no longer recognises, because the arriving batch replaces them, or because their client got the reply and
   * then reused their ids.
   */
  readonly retired: readonly number[]
}

/**
 * Decides whether an arriving batch is new. `earlier` lists the batches of the same owner and ids that are not retired: first the batches
 * with the same content, then the others, each newest first.
 */
function judgeArrival(
  arriving: Pick<NewBatch, 'receivedMs' | 'side' | 'replacesBatch' | 'resendOf' | 'content'>,
  { replayForMs, forgottenAgeMs }: ChangeContext,
  earlier: readonly SameIds[],
): Arrival {
  const { side, replacesBatch = 0, resendOf = Infinity } = arriving
  const content = toHex(arriving.content)
  const recent = earlier.filter(
    (one) => one.ageMs > forgottenAgeMs || Math.round(arriving.receivedMs) - one.receivedMs < replayForMs,
  )
  const isReplaced = (one: SameIds): boolean => one.onV2 === 1 && one.batch <= replacesBatch
  const same = recent.filter((one) => one.content === content)
  const others = recent.filter((one) => one.content !== content)
  const mayAnswer = (one: SameIds): boolean => side === undefined || one.onV2 === 0 || one.batch > resendOf
  const found = same.find((one) => !isReplaced(one) && mayAnswer(one))
  const latest = found?.batch ?? replacesBatch
  const begunForV2 = same.filter((one) => one.onV2 === 1 && one.batch !== latest)
  // Returns true if the client received the reply to this batch or to a later batch with the same bytes.
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

export const toHex = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('hex')
