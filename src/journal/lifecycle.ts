/** The states of a record, in the order of their codes in the tables. */
export const recordStates = ['open', 'confirmed', 'refused', 'unknown', 'parked', 'notApplied'] as const

/**
 * The state of a record. `open` is in flight; at all times received = confirmed + refused + notApplied + unknown + parked + open.
 * `refused`: the service or the adapter judged the record. `notApplied`: nobody judged it, and it stands nowhere. A record that is not
 * open is `active` while it is due or may be sent again; then it may become open once more.
 */
export type RecordState = (typeof recordStates)[number]

/** A change of the journal that moves a record from one state to another. */
export type LifecycleEvent = 'begin' | 'settle' | 'reopen' | 'supersede' | 'expire'

/** One way from a state to another. */
export interface Transition {
  readonly on: LifecycleEvent
  /** Undefined: the record is new. */
  readonly from: RecordState | undefined
  readonly to: RecordState
  /** Whether the record is active afterwards. */
  readonly active: 'always' | 'never' | 'may be'
  /** Why a record takes this way. The table of docs/operations.md has the same words. */
  readonly reason: string
}

/** Every transition there is. Balances follow from it: each moves a record from the total of `from` to the total of `to`. */
export const transitions = [
  { on: 'begin', from: undefined, to: 'open', active: 'always', reason: 'received; not sent before this is durable' },
  { on: 'begin', from: undefined, to: 'refused', active: 'never', reason: 'the adapter refuses it; it is never sent' },
  { on: 'settle', from: 'open', to: 'confirmed', active: 'never', reason: 'V3 accepted it, or V2' },
  { on: 'settle', from: 'open', to: 'refused', active: 'never', reason: 'V3 or V2 refused it, or the credentials of its whole batch' },
  { on: 'settle', from: 'open', to: 'notApplied', active: 'may be', reason: 'nobody judged it, and its client was told to send it again, or nothing retries it any longer' },
  { on: 'settle', from: 'open', to: 'unknown', active: 'may be', reason: 'it was sent and no readable answer came' },
  { on: 'settle', from: 'open', to: 'parked', active: 'may be', reason: 'it was not applied, and its client was told 200 or is gone' },
  { on: 'reopen', from: 'notApplied', to: 'open', active: 'always', reason: 'its client sent the same batch again' },
  { on: 'reopen', from: 'unknown', to: 'open', active: 'always', reason: 'it is due, or its client sent the same batch again' },
  { on: 'reopen', from: 'parked', to: 'open', active: 'always', reason: 'it is due, or its client sent the same batch again' },
  { on: 'supersede', from: 'notApplied', to: 'refused', active: 'never', reason: 'a newer record of its key was confirmed, or may have been applied and is not read back again' },
  { on: 'supersede', from: 'unknown', to: 'unknown', active: 'never', reason: 'a newer record of its key was confirmed, or may have been applied and is not read back again' },
  { on: 'supersede', from: 'parked', to: 'refused', active: 'never', reason: 'a newer record of its key was confirmed, or may have been applied and is not read back again' },
  { on: 'expire', from: 'unknown', to: 'unknown', active: 'never', reason: '`journal.replayForMs` is over: its client can no longer send it again' },
  { on: 'expire', from: 'notApplied', to: 'notApplied', active: 'never', reason: '`journal.replayForMs` is over: its client can no longer send it again' },
] as const satisfies readonly Transition[] // prettier-ignore

type StatesOf<On extends LifecycleEvent, End extends 'from' | 'to'> = Extract<
  (typeof transitions)[number],
  { on: On }
>[End]

/** The states that an open record may change to. */
export type SettledState = StatesOf<'settle', 'to'>
/** Codes of the states in the tables. */
export const stateCodes = Object.fromEntries(recordStates.map((state, code) => [state, code])) as Readonly<
  Record<RecordState, number>
>

/** Makes one value for each state. */
export const ofEachState = <Value>(valueOf: (state: RecordState) => Value): Record<RecordState, Value> => ({
  open: valueOf('open'),
  confirmed: valueOf('confirmed'),
  refused: valueOf('refused'),
  unknown: valueOf('unknown'),
  parked: valueOf('parked'),
  notApplied: valueOf('notApplied'),
})

/** The columns of tables that count records by state: a database folds the case of names. */
export const stateColumns = ofEachState((state) =>
  state.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
)

/** These columns under the names of the states; SQL. `alias` ends with its point. */
export const selectStates = (alias = ''): string =>
  recordStates.map((state) => `${alias}${stateColumns[state]} as "${state}"`).join()

/** Active records of these states keep older ones of their key from being opened again: they are sent now or may have been applied. */
export const standingStates = ['open', 'unknown'] as const satisfies readonly RecordState[]

/** By the code of a state that a newer confirmed record of the same key ends, as far as it is active, that of the state it comes into. */
export const supersededCodes: ReadonlyMap<number, number> = new Map(
  transitions.flatMap((one) => (one.on === 'supersede' ? [[stateCodes[one.from], stateCodes[one.to]]] : [])),
)

/** `retry` in the tables, of a record that is sent again with its batch. */
export const RESEND = -1

/** What `retry` of the port is in the tables. */
export function toRetryCode(retry: 'resend' | number | undefined): number | null {
  if (retry === 'resend') return RESEND
  return retry === undefined ? null : Math.ceil(retry)
}

/** What `retry` of the tables is in the port. */
export function toRetry(code: number | null): 'resend' | number | undefined {
  return code === RESEND ? 'resend' : (code ?? undefined)
}
