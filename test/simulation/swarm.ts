import type { Random } from '../../src/sandbox/random.ts'
import { valueRulesSchema } from '../../src/sandbox/control/stored-values.ts'
import type { ServiceHabits } from './simulated-service.ts'

/** The kinds of faults that a history may have. */
export const faultKinds = [
  'slowService', 'slowRate', 'lostBefore', 'lostAfter', 'late', 'cut', 'stalled', 'refusedConnections',
  'kill', 'pause', 'wallSteps', 'storeSteps', 'serviceTimes', 'values', 'stale',
  'storeRefused', 'storeUnanswered', 'storeSlow', 'storm', 'appliedErrors',
  'otherWriters', 'impatience', 'lostReplies', 'constantIds', 'wrongTokens', 'renewedTokens', 'badRecords', 'drift',
] as const // prettier-ignore
export type FaultKind = (typeof faultKinds)[number]

/** A history in a few numbers: what shrinking makes smaller. */
export interface Scale {
  readonly instances: number
  readonly clients: number
  /** Learners and events that the clients write for. */
  readonly keys: number
  readonly batchesPerClient: number
  readonly maxRecords: number
  /** How long clients wait between two batches, at most. */
  readonly thinkMs: number
  readonly faults: ReadonlySet<FaultKind>
}

/** Draws which faults a history has at all, and how large it is. */
export function drawScale(random: Random): Scale {
  const density = random.pick([0.1, 0.25, 0.5])
  const faults = new Set(faultKinds.filter(() => random.chance(density)))
  // What another program wrote is known by its time alone, so a clock that goes back in the middle hides it (docs/decisions/012).
  if (faults.has('otherWriters'))
    for (const kind of ['serviceTimes', 'values', 'wallSteps'] as const) faults.delete(kind)
  return {
    instances: random.pick([1, 1, 2, 2, 3]),
    clients: 1 + random.below(4),
    keys: random.pick([1, 1, 2, 3]),
    batchesPerClient: 1 + random.below(3),
    maxRecords: random.pick([1, 2, 3, 6]),
    thinkMs: random.pick([10, 100, 1_500]),
    faults,
  }
}

/** How often each fault comes where it exists. */
export interface Rates {
  readonly lostBefore: number
  readonly lostAfter: number
  readonly late: number
  readonly cut: number
  readonly stalled: number
  readonly refusedConnections: number
  readonly storeRefused: number
  readonly storeUnanswered: number
  readonly storeSlow: number
  readonly impatience: number
  readonly lostReplies: number
}

export function drawRates(random: Random, { faults }: Scale): Rates {
  const rate = (kind: keyof Rates): number => (faults.has(kind) ? random.pick([0.02, 0.1, 0.3]) : 0)
  return {
    lostBefore: rate('lostBefore'),
    lostAfter: rate('lostAfter'),
    late: rate('late'),
    cut: rate('cut'),
    stalled: rate('stalled'),
    refusedConnections: rate('refusedConnections'),
    storeRefused: rate('storeRefused'),
    storeUnanswered: rate('storeUnanswered'),
    storeSlow: rate('storeSlow') / 4,
    impatience: rate('impatience'),
    lostReplies: rate('lostReplies'),
  }
}

/** The service's way with values; its times may change later. */
export function drawValues(random: Random, { faults }: Scale): ServiceHabits['values'] {
  const values: Record<string, unknown> = {}
  if (faults.has('values')) {
    const comments = [
      [],
      ['trim'],
      ['trimEnd'],
      ['collapse'],
      ['nfc'],
      ['nfd'],
      ['crlfToLf'],
      ['lfToCrlf'],
      [{ cut: 12 }],
      ['trim', { cut: 20 }],
    ]
    const nulls = [
      [],
      ['minutesLateToZero'],
      ['zeroToNull'],
      ['commentToEmpty'],
      ['emptyToNull'],
      ['minutesLateToZero', 'emptyToNull'],
    ]
    values['comments'] = comments[random.below(comments.length)]
    values['nulls'] = nulls[random.below(nulls.length)]
    values['echo'] = random.pick(['stored', 'posted'])
    values['times'] = random.pick(['keep', 'keep', 'seconds', 'roundSeconds', 'sqlDatetime', 'minutes'])
    values['clock'] = random.pick(['client', 'client', 'server'])
  }
  return valueRulesSchema.parse(values)
}

const HOUR_MS = 3_600_000

/** Another clock, precision or rounding of the service. */
export function changeTimes(random: Random, values: ServiceHabits['values']): ServiceHabits['values'] {
  switch (random.below(3)) {
    case 0:
      return { ...values, offsetMs: random.pick([0, 0, 2 * HOUR_MS, -2 * HOUR_MS, 3_000, -3_000, 90_000]) }
    case 1:
      return {
        ...values,
        times: random.pick(['keep', 'seconds', 'roundSeconds', 'sqlDatetime', 'minutes', 'roundMinutes']),
      }
    default:
      return { ...values, clock: values.clock === 'server' ? 'client' : 'server' }
  }
}
