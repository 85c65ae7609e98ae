import type { WallClock } from '../clock.ts'
import { AdapterError } from '../errors.ts'
import type { BeginResult, NewBatch, ReopenResult, Settled } from './journal.ts'
import { damagedJournal, type StoreError } from './store-error.ts'

/** One change of the journal. Those that wait together are made in one transaction. */
export type Operation =
  /** Without room it is only recognised: a batch that came before has its answer, however much is kept. So is one whose caller has given up. */
  | { readonly kind: 'begin'; readonly batch: NewBatch; readonly hasRoom: boolean }
  | {
      readonly kind: 'settle'
      readonly batch: number
      readonly outcomes: readonly Settled[]
      /** The lease under which the records were opened; undefined: whichever the instance has now. */
      readonly lease: number | undefined
    }
  | {
      readonly kind: 'reopen'
      readonly batch: number
      readonly positions: readonly number[]
      readonly credentials: string | undefined
      /** Open records that V2 serves forbid nothing. */
      readonly beforeRelay: boolean
    }
  /** Takes batches with open records whose instances are gone. It counts as a commit, so that an instance notices when a database forgets it. */
  | { readonly kind: 'takeOver' }
  | { readonly kind: 'forget'; readonly batch: number; readonly open: number; readonly lease: number }
  /** Notes batches whose replies were written out whole. Of none: its commit shows whether the store takes writes. */
  | { readonly kind: 'answered'; readonly batches: readonly number[] }

/** An operation of one kind. */
export type OperationOf<Kind extends Operation['kind']> = Extract<Operation, { readonly kind: Kind }>

/** The results of the operations. `lost`: it must not count: another instance owns the batch, or it says something else than what is kept. */
interface Results {
  /** `full`: a new batch for which there is no room: nothing of it is kept. */
  readonly begin: BeginResult | 'full'
  readonly settle: 'done' | 'lost'
  readonly reopen: ReopenResult
  readonly takeOver: { readonly lease: number; readonly batches: readonly number[] }
  readonly forget: 'done' | 'lost'
  readonly answered: 'done'
}

/** The result of an operation. `doubtful`: its commit was not answered, and nothing says any longer whether it was made. */
export type OperationResult = Results[keyof Results] | 'doubtful'

/** The results in the order of the operations, or why there are none. */
export type Committed =
  | { readonly ok: true; readonly results: readonly OperationResult[] }
  | { readonly ok: false; readonly error: StoreError }

/**
 * Decides who comes first: the store that commits a group, or a caller that gives up. Only so a caller can be told for certain that
 * nothing was kept. Threads share it.
 */
export type CommitGate = Int32Array<SharedArrayBuffer>

const [OPEN, CLOSED, PASSED] = [0, 1, 2]

/** Creates the gate of one attempt to commit. */
export const createCommitGate = (): CommitGate => new Int32Array(new SharedArrayBuffer(4))

/** The store calls this right before it commits. False: the gate is closed, and the group must be rolled back. */
export const passGate = (gate: CommitGate): boolean =>
  Atomics.compareExchange(gate, 0, OPEN, PASSED) !== CLOSED

/** True once the store has begun to commit. */
export const hasPassed = (gate: CommitGate): boolean => Atomics.load(gate, 0) === PASSED

/** True: the group will not be committed. False: it may be, or is. */
const closeGate = (gate: CommitGate): boolean => Atomics.compareExchange(gate, 0, OPEN, CLOSED) !== PASSED

interface GroupCommitOptions {
  readonly clock: WallClock
  /** Makes a group durable, unless its gate is closed before. Never rejects. */
  readonly commit: (operations: readonly Operation[], gate: CommitGate) => Promise<Committed>
}

/** Operations that wait for the store; those that wait at the same moment go in one transaction. */
export interface GroupCommit {
  /**
   * Resolves once the operation is durable. Errors after `timeoutMs`: `ADP_JOURNAL_UNAVAILABLE` where it certainly is not and will
   * not be, else `ADP_OUTCOME_UNKNOWN`.
   */
  submit<Kind extends Operation['kind']>(
    operation: OperationOf<Kind>,
    timeoutMs: number,
  ): Promise<Results[Kind]>
  /** How many operations were submitted so far. */
  submitted(): number
  /** True once it is known what became of the first `count` operations; their callers may have given up before. */
  areEnded(count: number): boolean
  /**
   * Resolves when no caller waits any longer. To be called before the store is closed: what is in doubt and has no caller any
   * longer is not tried again.
   */
  idle(): Promise<void>
}

interface Entry {
  /** From 0, in the order of the calls. */
  readonly number: number
  readonly operation: Operation
  readonly resolve: (result: OperationResult) => void
  readonly reject: (error: AdapterError) => void
  readonly cancelDeadline: () => void
  /** `sent`: not known yet to be durable. */
  state: 'waiting' | 'sent'
  /** Of the last attempt. */
  gate: CommitGate | undefined
  /** It once was sent without an answer: until there is one, it may be durable. */
  doubtful: boolean
  /** Its caller was told that it failed. */
  abandoned: boolean
}

const MAX_OPERATIONS = 256
const MAX_BYTES = 8 * 1024 * 1024
const FIRST_PAUSE_MS = 50
const LONGEST_PAUSE_MS = 1_000

/** Creates a group commit with nothing in it. */
export function createGroupCommit({ clock, commit }: GroupCommitOptions): GroupCommit {
  let queue: Entry[] = []
  /** The group that is being committed. */
  let sent: readonly Entry[] = []
  let submitted = 0
  let planned = false
  let pauseMs = 0
  /** So many groups are of one operation: one of those that failed together cannot be stored. */
  let alone = 0
  let lastError: StoreError | undefined
  let whenIdle: (() => void)[] = []
  let ending = false

  const plan = (): void => {
    if (planned || queue.length === 0 || sent.length > 0) return
    planned = true
    // Not at once: operations that arrive in this turn of the event loop join the group.
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
      if (result === 'doubtful') entry.reject(mayBeKept(undefined))
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
        if (!abandoned) reject(doubtful ? mayBeKept(storeError) : toFinalError(storeError))
      }
      plan()
      return
    }
    if (final) alone = entries.length
    // An operation that may be durable is retried even without a waiting caller: only then is it known, and finished.
    for (const entry of entries) entry.doubtful ||= storeError.kind === 'doubtful'
    const kept = entries.filter(({ abandoned, doubtful }) => !abandoned || (doubtful && !ending))
    for (const entry of kept) entry.state = entry.doubtful ? 'sent' : 'waiting'
    queue = [...kept, ...queue]
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
    // A settle is not stopped: its request answers "unknown" in either case.
    const isStopped =
      entry.operation.kind === 'begin' && entry.gate !== undefined && !entry.doubtful && closeGate(entry.gate)
    const isKnown = entry.state === 'waiting' || isStopped
    if (entry.state === 'waiting') queue = queue.filter((one) => one !== entry)
    entry.reject(isKnown ? isNotKept(lastError) : mayBeKept(lastError))
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
          // The store answers each operation with a result of its kind.
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
 * A begin whose caller has given up is only recognised: if nothing of it is durable by now, newer writes of its client may be, and it must not
 * come after them.
 */
const toSend = ({ operation, abandoned }: Entry): Operation =>
  abandoned && operation.kind === 'begin' ? { ...operation, hasRoom: false } : operation

/** True where trying again changes nothing. */
const isFinal = ({ kind }: StoreError): boolean =>
  kind === 'refused' || kind === 'internal' || kind === 'damaged'

const isNotKept = (storeError: StoreError | undefined): AdapterError =>
  new AdapterError(
    'ADP_JOURNAL_UNAVAILABLE',
    `The journal cannot be written: ${storeError?.message ?? NO_ANSWER}. Nothing was sent for what it could not keep.`,
    { cause: storeError?.cause },
  )

/** The store may have kept it: then it is found as abandoned, and finished. */
const mayBeKept = (storeError: StoreError | undefined): AdapterError =>
  new AdapterError(
    'ADP_OUTCOME_UNKNOWN',
    `The journal cannot be written: ${storeError?.message ?? NO_ANSWER}. It may be kept all the same: send the same batch again for the answer.`,
    { cause: storeError?.cause },
  )

const NO_ANSWER = 'it does not answer'

function toFinalError({ kind, message, cause }: StoreError): AdapterError {
  if (kind === 'damaged') return damagedJournal(message, cause)
  return new AdapterError('ADP_INTERNAL', `The journal cannot store this: ${message}.`, { cause })
}

/** How many of the first operations go together: bounded, so that no transaction grows with the load. */
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
