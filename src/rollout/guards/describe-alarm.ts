import type { GuardKindName } from './guard-kinds.ts'
import type { GuardVerdict } from './judge.ts'

const outcomes: Readonly<Record<GuardKindName, string>> = {
  unknown: 'unknown outcomes',
  serverError: 'server errors',
  refused: 'refused records',
  slow: 'slow answers',
}

/** An alarm as a sentence for operators, with its figures. */
export function describeAlarm(alarm: Extract<GuardVerdict, { verdict: 'alarm' }>): string {
  const { kind, test, unit, heldBecause, figures } = alarm
  const { v3, v3Bad, v2, v2Bad } = figures
  const what = outcomes[kind]
  const counts = `${v3Bad} of ${v3} counted writes on V3, ${v2Bad} of ${v2} on V2`
  if (test === 'units') return `School ${unit ?? ''} has far more ${what} on V3 than all others (${counts}).`
  if (test === 'alone')
    return `V3 has more ${what} than is tolerated, and there is no V2 to compare with (${counts}).`
  const held = heldBecause === 'v2Worse' ? ' V2 is worse just now, so nothing goes back.' : ''
  return `V3 has more ${what} than V2 at the same time (${counts}).${held}`
}
