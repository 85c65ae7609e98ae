import type { WallClock } from '../clock.ts'
import { AdapterError } from '../errors.ts'
import type { BeginResult, NewBatch, ReopenResult, Settled } from './journal.ts'
import { damagedJournal, type StoreError } from './store-error.ts'

/** One change of the journal. Changes that wait at the same time share one transaction. */
export type Operation =
  /** If `hasRoom` is false, the store recognises a known batch but stores no new batch: the owner's limit is reached, or the caller has given up. */
  | { readonly kind: 'begin'; readonly batch: NewBatch; readonly hasRoom: boolean }
  | {
      readonly kind: 'settle'
      readonly batch: number
      readonly outcomes: readonly Settled[]
      /** The lease under which the records were opened, or `undefined` for the current lease of the instance. */
      readonly lease: number | undefined
    }
  | {
      readonly kind: 'reopen'
      readonly batch: number
      readonly positions: readonly number[]
      readonly credentials: string | undefined
      /** True if open records that V2 serves do not prevent reopening. */
      readonly beforeRelay: boolean
    }
  /** Takes over open batches of dead instances. Counts as a commit, so that the instance notices if the database loses the commit. */
  | { readonly kind: 'takeOver' }
  | { readonly kind: 'forget'; readonly batch: number; readonly open: number; readonly lease: number }
  /** Records the batches whose replies were written out completely. An empty list tests whether the store accepts writes. */
  | { readonly kind: 'answered'; readonly batches: readonly number[] }

export type OperationOf<Kind extends Operation['kind']> = Extract<Operation, { readonly kind: Kind }>

/** Results by operation. With `lost` the operation takes no effect: another instance owns the batch, or a different outcome is stored. */
interface Results {
  /** `full` if there is no room for a new batch. No part of the batch is then stored. */
  readonly begin: BeginResult | 'full'
  readonly settle: 'done' | 'lost'
  readonly reopen: ReopenResult
  readonly takeOver: { readonly lease: number; readonly batches: readonly number[] }
  readonly forget: 'done' | 'lost'
  readonly answered: 'done'
}

/** `doubtful` if the reply to the commit was lost, and the journal can no longer find out whether the commit succeeded. */
export type OperationResult = Results[keyof Results] | 'doubtful'

export type Committed =
  | { readonly ok: true; readonly results: readonly OperationResult[] }
  | { readonly ok: false; readonly error: StoreError }

/** Decides the race between the store, which commits a group, and a caller that gives up. Threads share the gate. */
export type CommitGate = Int32Array<SharedArrayBuffer>

const [OPEN, CLOSED, PASSED] = [0, 1, 2]

export const createCommitGate = (): CommitGate => new Int32Array(new SharedArrayBuffer(4))

/** Passes the gate immediately before the commit. Returns false if the gate is closed; the store must then roll back. */
export const passGate = (gate: CommitGate): boolean =>
  Atomics.compareExchange(gate, 0, OPEN, PASSED) !== CLOSED

export const hasPassed = (gate: CommitGate): boolean => Atomics.load(gate, 0) === PASSED

/** Closes the gate. Returns true if the group will not be committed, or false if the group was committed or may be. */
const closeGate = (gate: CommitGate): boolean => Atomics.compareExchange(gate, 0, OPEN, CLOSED) !== PASSED

interface GroupCommitOptions {
  readonly clock: WallClock
  /** Makes a group durable unless its gate is closed first. Never rejects. */
  readonly commit: (operations: readonly Operation[], gate: CommitGate) => Promise<Committed>
}

export interface GroupCommit {
  /**
   * Resolves once the operation is durable. Throws `ADP_JOURNAL_UNAVAILABLE` if the operation was not stored, or `ADP_OUTCOME_UNKNOWN` if
   * it may be stored.
   */
  submit<Kind extends Operation['kind']>(
    operation: OperationOf<Kind>,
    timeoutMs: number,
  ): Promise<Results[Kind]>
  submitted(): number
  /** Returns true once the results of the first `count` operations are known. Operations whose caller has given up count too. */
  areEnded(count: number): boolean
  /**
   * Resolves once no caller waits for a result. Must be called before the store closes. After the call, an operation whose caller has given
   * up is no longer retried.
   */
  idle(): Promise<void>
}

interface Entry {
  /** The position of the operation in the order of the calls, counted from 0. */
  readonly number: number
  readonly operation: Operation
  readonly resolve: (result: OperationResult) => void
  readonly reject: (error: AdapterError) => void
  readonly cancelDeadline: () => void
  /** `sent` if the operation was sent to the store and may be durable. */
  state: 'waiting' | 'sent'
  gate: CommitGate | undefined
  /** True once an attempt got no reply. The operation may be durable until a later attempt gets a reply. */
  doubtful: boolean
  /** True if the caller was told that the operation failed. */
  abandoned: boolean
}

const MAX_OPERATIONS = 256
const MAX_BYTES = 8 * 1024 * 1024
const FIRST_PAUSE_MS = 50
const LONGEST_PAUSE_MS = 1_000

export function createGroupCommit({ clock, commit }: GroupCommitOptions): GroupCommit {
  let queue: Entry[] = []
  let sent: readonly Entry[] = []
  let submitted = 0
  let planned = false
  let pauseMs = 0
  /**
   * How many of the next groups get only one operation each. The operations of a failed group are retried one by one, to find the operation
   * that failed.
   */
  let alone = 0
  let lastError: StoreError | undefined
  let whenIdle: (() => void)[] = []
  let ending = false

  const plan = (): void => {
    if (planned || queue.length === 0 || sent.length > 0) return
    planned = true
    // Waits until the end of this turn of the event loop, so that later operations of the turn join the group.
    setImmediate(pump)
  }
  const pump = (): void => {
    planned = false
    if (sent.length > 0 || queue.length === 0) return
    const size = alone > 0 ? 1 : groupSize(queue)
    if (alone > 0) alone -= 1
    const entries = queue.slice(0, size)
    queue = queue.slice(size)
    const gate = createCommitGate()
    for (const entry of entries) {
      entry.state = 'sent'
      entry.gate = gate
    }
    sent = entries
    const operations = entries.map(toSend)
    const ended = (committed: Committed): void => {
      sent = []
      if (committed.ok) succeed(entries, committed.results)
      else fail(entries, committed.error)
      wakeIdle()
    }
    commit(operations, gate).then(ended, (cause: unknown) =>
      ended({ ok: false, error: { kind: 'doubtful', message: 'its commit failed unexpectedly', cause } }),
    )
  }
  const isIdle = (): boolean => sent.length === 0 && queue.every(({ abandoned }) => abandoned)
  const wakeIdle = (): void => {
    if (!isIdle()) return
    for (const wake of whenIdle) wake()
    whenIdle = []
  }
  const succeed = (entries: readonly Entry[], results: readonly OperationResult[]): void => {
    pauseMs = 0
    lastError = undefined
    entries.forEach((entry, index) => {
      const result = results[index] ?? 'lost'
      entry.cancelDeadline()
      if (entry.abandoned) return
      if (result === 'doubtful') entry.reject(mayBeStored(undefined))
      else entry.resolve(result)
    })
    plan()
  }
  const fail = (entries: readonly Entry[], storeError: StoreError): void => {
    lastError = storeError
    const final = isFinal(storeError)
    if (final && (entries.length === 1 || storeError.kind === 'damaged')) {
      for (const { cancelDeadline, abandoned, doubtful, reject } of entries) {
        cancelDeadline()
        if (!abandoned) reject(doubtful ? mayBeStored(storeError) : toFinalError(storeError))
      }
      plan()
      return
    }
    if (final) alone = entries.length
    // Retries an operation that may be durable even if no caller waits, because only a reply of the store shows whether the operation is
    // durable.
    for (const entry of entries) entry.doubtful ||= storeError.kind === 'doubtful'
    const remaining = entries.filter(({ abandoned, doubtful }) => !abandoned || (doubtful && !ending))
    for (const entry of remaining) entry.state = entry.doubtful ? 'sent' : 'waiting'
    queue = [...remaining, ...queue]
    if (final) {
      plan()
      return
    }
    pauseMs = Math.min(Math.max(FIRST_PAUSE_MS, pauseMs * 2), LONGEST_PAUSE_MS)
    planned = true
    clock.after(pauseMs, pump)
  }
  const expire = (entry: Entry): void => {
    entry.abandoned = true
    // Closes the gate only for a begin. The caller of a settle tells its client that the outcome is unknown, whether or not the group is
    // committed.
    const isStopped =
      entry.operation.kind === 'begin' && entry.gate !== undefined && !entry.doubtful && closeGate(entry.gate)
    const isKnown = entry.state === 'waiting' || isStopped
    if (entry.state === 'waiting') queue = queue.filter((one) => one !== entry)
    entry.reject(isKnown ? isNotStored(lastError) : mayBeStored(lastError))
    if (ending) queue = queue.filter(({ abandoned }) => !abandoned)
    wakeIdle()
  }
  return {
    submit: <Kind extends Operation['kind']>(operation: OperationOf<Kind>, timeoutMs: number) =>
      new Promise<Results[Kind]>((resolve, reject) => {
        const cancelDeadline = clock.after(timeoutMs, () => expire(entry))
        const entry: Entry = {
          number: submitted++,
          operation,
          resolve: (result) => resolve(result as Results[Kind]),
          reject,
          cancelDeadline,
          state: 'waiting',
          gate: undefined,
          doubtful: false,
          abandoned: false,
        }
        queue.push(entry)
        plan()
      }),
    submitted: () => submitted,
    areEnded: (count) => [...sent, ...queue].every(({ number }) => number >= count),
    idle: () => {
      ending = true
      queue = queue.filter(({ abandoned }) => !abandoned)
      if (isIdle()) return Promise.resolve()
      return new Promise((resolve) => {
        whenIdle.push(resolve)
      })
    },
  }
}

/**
 * Prepares an operation for the store. If the caller of a begin has given up, the store may recognise an earlier copy of the batch, but
 * must not store a new batch. Stored so late, a new batch would count as newer than writes that the same client has sent since.
 */
const toSend = ({ operation, abandoned }: Entry): Operation =>
  abandoned && operation.kind === 'begin' ? { ...operation, hasRoom: false } : operation

const isFinal = ({ kind }: StoreError): boolean =>
  kind === 'refused' || kind === 'internal' || kind === 'damaged'

const isNotStored = (storeError: StoreError | undefined): AdapterError =>
  new AdapterError(
    'ADP_JOURNAL_UNAVAILABLE',
    `The journal cannot be written: ${storeError?.message ?? NO_ANSWER}. Records that could not be stored were not sent, but an earlier copy of the request may have been applied. Send the same request again later, unchanged.`,
    { cause: storeError?.cause },
  )

/** Returns the error for a batch that may have been stored. Recovery finds such a batch with `findAbandoned` and finishes it. */
const mayBeStored = (storeError: StoreError | undefined): AdapterError =>
  new AdapterError(
    'ADP_OUTCOME_UNKNOWN',
    `The journal cannot be written: ${storeError?.message ?? NO_ANSWER}. The request may have been stored. Send the same batch again for the result.`,
    { cause: storeError?.cause },
  )

const NO_ANSWER = 'it does not respond'

function toFinalError({ kind, message, cause }: StoreError): AdapterError {
  if (kind === 'damaged') return damagedJournal(message, cause)
  return new AdapterError(
    'ADP_INTERNAL',
    `The journal cannot store this change: ${message}. The change was not stored. Report this fault to the operator.`,
    { cause },
  )
}

/** Returns how many operations from the start of the queue form one group. The limits keep a transaction from growing with the load. */
function groupSize(queue: readonly Entry[]): number {
  let bytes = 0
  let size = 0
  for (const { operation } of queue) {
    bytes += operation.kind === 'begin' ? operation.batch.payload.byteLength : 0
    if (size > 0 && (bytes > MAX_BYTES || size >= MAX_OPERATIONS)) break
    size += 1
  }
  return size
}
