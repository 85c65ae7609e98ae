import type { GuardKindName } from './guard-kinds.ts'
import type { GuardVerdict } from './judge.ts'

const outcomes: Readonly<Record<GuardKindName, string>> = {
  unknown: 'unknown outcomes',
  serverError: 'server errors',
  refused: 'refused records',
  slow: 'slow answers',
  mismatch: 'marks that V2 has otherwise',
}

/** An alarm as a sentence for operators, with its figures. */
export function describeAlarm(alarm: Extract<GuardVerdict, { verdict: 'alarm' }>): string {
  const { kind, test, unit, heldBecause, figures } = alarm
  const { v3, v3Bad, v2, v2Bad } = figures
  const what = outcomes[kind]
  if (kind === 'mismatch') {
    const compared = `${v3Bad} of ${v3} counted comparisons of what V3 served`
    return test === 'units'
      ? `School ${unit ?? ''} has far more ${what} than all others (${compared}).`
      : `Comparison found more ${what} than is tolerated (${compared}).`
  }
  const counts = `${v3Bad} of ${v3} counted writes on V3, ${v2Bad} of ${v2} on V2`
  if (test === 'units') return `School ${unit ?? ''} has far more ${what} on V3 than all others (${counts}).`
  if (test === 'alone')
    return `V3 has more ${what} than is tolerated, and there is no V2 to compare with (${counts}).`
  const held = heldBecause === 'v2Worse' ? ' V2 is worse just now, so nothing goes back.' : ''
  return `V3 has more ${what} than V2 at the same time (${counts}).${held}`
}
