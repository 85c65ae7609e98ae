import type { RecordState } from '../journal.ts'

/** States by their code in the tables. */
export const recordStates = [
  'open',
  'confirmed',
  'refused',
  'unknown',
  'parked',
] as const satisfies readonly RecordState[]

/** Codes of the states that are asked for by name. */
export const stateCodes: Readonly<Record<RecordState, number>> = {
  open: 0,
  confirmed: 1,
  refused: 2,
  unknown: 3,
  parked: 4,
}

/** `again` of a record that is sent again with its batch. */
export const RESEND = -1

/** What `again` of the port is in the tables. */
export function toRetryCode(again: 'resend' | number | undefined): number | null {
  if (again === 'resend') return RESEND
  return again === undefined ? null : Math.ceil(again)
}

/** What `again` of the tables is in the port. */
export function toRetry(code: number | null): 'resend' | number | undefined {
  return code === RESEND ? 'resend' : (code ?? undefined)
}
