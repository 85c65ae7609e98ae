/** The states of a record, in the order of their codes in the tables. */
export const recordStates = ['open', 'confirmed', 'refused', 'unknown', 'parked', 'notApplied'] as const

/**
 * The state of a record. An `open` record is in flight. The total received always equals confirmed + refused + notApplied + unknown +
 * parked + open.
 *
 * A `refused` record was rejected by the service or the adapter. A `notApplied` record was neither accepted nor rejected, and was not
 * applied. A record that is not open is `active` while it is due or may be sent again; only an active record can be reopened.
 */
export type RecordState = (typeof recordStates)[number]

export type LifecycleEvent = 'begin' | 'settle' | 'reopen' | 'supersede' | 'expire'

export interface Transition {
  readonly on: LifecycleEvent
  readonly from: RecordState | undefined
  readonly to: RecordState
  /** Whether the record is active after the transition. `may be` if the outcome decides. */
  readonly active: 'always' | 'never' | 'may be'
  /** The cause of the transition. The table in docs/operations.md uses the same words. */
  readonly reason: string
}

/** All transitions between the states. Each moves a record from the total of `from` to the total of `to`, so the ledger stays balanced. */
export const transitions = [
  { on: 'begin', from: undefined, to: 'open', active: 'always', reason: 'the adapter received the record, and sends the record only once the journal has stored it durably' },
  { on: 'begin', from: undefined, to: 'refused', active: 'never', reason: 'the adapter refused the record and never sends it' },
  { on: 'settle', from: 'open', to: 'confirmed', active: 'never', reason: 'V3 or V2 accepted the record' },
  { on: 'settle', from: 'open', to: 'refused', active: 'never', reason: 'V3 or V2 refused the record, or the credentials of the whole batch' },
  { on: 'settle', from: 'open', to: 'notApplied', active: 'may be', reason: 'V3 did not judge the record, and either the client was told to send the record again, or nothing retries the record any longer' },
  { on: 'settle', from: 'open', to: 'unknown', active: 'may be', reason: 'the record was sent, but no readable reply arrived' },
  { on: 'settle', from: 'open', to: 'parked', active: 'may be', reason: 'the record was not applied, and the client got 200 or is no longer connected' },
  { on: 'reopen', from: 'notApplied', to: 'open', active: 'always', reason: 'the client sent the same batch again' },
  { on: 'reopen', from: 'unknown', to: 'open', active: 'always', reason: 'a retry is due, or the client sent the same batch again' },
  { on: 'reopen', from: 'parked', to: 'open', active: 'always', reason: 'a retry is due, or the client sent the same batch again' },
  { on: 'supersede', from: 'notApplied', to: 'refused', active: 'never', reason: 'a newer record of the same key was confirmed, or may have been applied and will not be read back again' },
  { on: 'supersede', from: 'unknown', to: 'unknown', active: 'never', reason: 'a newer record of the same key was confirmed, or may have been applied and will not be read back again' },
  { on: 'supersede', from: 'parked', to: 'refused', active: 'never', reason: 'a newer record of the same key was confirmed, or may have been applied and will not be read back again' },
  { on: 'expire', from: 'unknown', to: 'unknown', active: 'never', reason: '`journal.replayForMs` has passed, so the client can no longer resend the batch' },
  { on: 'expire', from: 'notApplied', to: 'notApplied', active: 'never', reason: '`journal.replayForMs` has passed, so the client can no longer resend the batch' },
] as const satisfies readonly Transition[] // prettier-ignore

type StatesOf<On extends LifecycleEvent, End extends 'from' | 'to'> = Extract<
  (typeof transitions)[number],
  { on: On }
>[End]

export type SettledState = StatesOf<'settle', 'to'>
export const stateCodes = Object.fromEntries(recordStates.map((state, code) => [state, code])) as Readonly<
  Record<RecordState, number>
>

export const ofEachState = <Value>(valueOf: (state: RecordState) => Value): Record<RecordState, Value> => ({
  open: valueOf('open'),
  confirmed: valueOf('confirmed'),
  refused: valueOf('refused'),
  unknown: valueOf('unknown'),
  parked: valueOf('parked'),
  notApplied: valueOf('notApplied'),
})

/** The columns that count records by state. Their names are in snake case, because databases fold the case of names. */
export const stateColumns = ofEachState((state) =>
  state.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
)

/** Converts an array of counts, indexed by state code, to an object with the columns of `stateColumns`. */
export const toStateColumns = (counts: readonly number[]): Readonly<Record<string, number>> =>
  Object.fromEntries(recordStates.map((state, code) => [stateColumns[state], counts[code] ?? 0]))

/** Returns SQL that selects the columns of `stateColumns` under the names of the states. `alias` includes its trailing dot. */
export const selectStates = (alias = ''): string =>
  recordStates.map((state) => `${alias}${stateColumns[state]} as "${state}"`).join()

/** The states in which an active record may be applied, and therefore prevents the reopening of older records of the same key. */
export const standingStates = ['open', 'unknown'] as const satisfies readonly RecordState[]

/** Maps the code of each state that a newer record of the same key can supersede to the code of the state that follows. */
export const supersededCodes: ReadonlyMap<number, number> = new Map(
  transitions.flatMap((one) => (one.on === 'supersede' ? [[stateCodes[one.from], stateCodes[one.to]]] : [])),
)

/** The `retry` value of a record that is sent again when the client resends its batch. */
export const RESEND = -1

export function toRetryCode(retry: 'resend' | number | undefined): number | null {
  if (retry === 'resend') return RESEND
  return retry === undefined ? null : Math.ceil(retry)
}

export function toRetry(code: number | null): 'resend' | number | undefined {
  return code === RESEND ? 'resend' : (code ?? undefined)
}
