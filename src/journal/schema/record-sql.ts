import { type RecordState, recordStates, stateCodes, supersededCode } from '../lifecycle.ts'
import { changeOfRecord } from './row-sums.ts'

// SQL of both databases for the conditions of lifecycle.ts. `alias` ends with its point.

/** A condition: the record is in this state. */
export const isIn = (state: RecordState, alias = ''): string => `${alias}state = ${stateCodes[state]}`

/** A condition: the record is open. */
export const isOpen = (alias = ''): string => isIn('open', alias)

/** A condition: the record is not open. */
export const isClosed = (alias = ''): string => `${alias}state <> ${stateCodes.open}`

const superseded = recordStates.flatMap((state, code) => {
  const next = supersededCode(code)
  return next === undefined || next === code ? [] : [{ state, code, next }]
})
const caseOf = (alias: string, then: (next: number) => string, otherwise: string): string =>
  `case ${alias}state ${superseded.map(({ code, next }) => `when ${code} then ${then(next)}`).join(' ')} else ${otherwise} end`

/** The assignments that supersede a record. */
export function supersede(alias = ''): string {
  const state = caseOf(alias, String, `${alias}state`)
  const reason = caseOf(alias, () => `'superseded'`, `${alias}reason`)
  const sum = changeOfRecord({ live: '0', again: 'null', superseded: '1', state }, alias)
  return `live = 0, again = null, superseded = 1, state = ${state}, reason = ${reason}, sum = ${sum}`
}

/** What a statement sets that opens a record again. What it was settled with stays, so that it can be read while it is open. */
export function reopen(alias = ''): string {
  const sum = changeOfRecord({ state: String(stateCodes.open), attempts: `${alias}attempts + 1` }, alias)
  return `state = ${stateCodes.open}, attempts = ${alias}attempts + 1, sum = ${sum}`
}

/** The assignments that confirm an open record. */
export function confirm(alias = ''): string {
  const state = String(stateCodes.confirmed)
  const from = { state: String(stateCodes.open) }
  const sum = changeOfRecord({ state, live: '0', again: 'null', dead_letter: '0' }, alias, from)
  return `state = ${state}, live = 0, again = null, reason = null, dead_letter = 0, sum = ${sum}`
}
