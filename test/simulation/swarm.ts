import type { Random } from '../../src/sandbox/random.ts'
import { valueRulesSchema } from '../../src/sandbox/control/stored-values.ts'
import type { ServiceHabits } from './simulated-service.ts'

const faultKinds = [
  'slowService', 'slowRate', 'lostBefore', 'lostAfter', 'late', 'cut', 'stalled', 'refusedConnections',
  'kill', 'pause', 'wallSteps', 'storeSteps', 'serviceTimes', 'values', 'stale',
  'storeRefused', 'storeUnanswered', 'storeSlow', 'storeDown', 'failover', 'storm', 'appliedErrors',
  'otherWriters', 'impatience', 'lostReplies', 'constantIds', 'wrongTokens', 'renewedTokens', 'badRecords', 'drift',
  'duplicates', 'lateRequests', 'otherIds', 'singleRecords',
] as const // prettier-ignore
/** Faults of a few histories: a service or a store that takes seconds, and processes that start with another configuration. */
const rareKinds = ['longCalls', 'storeStalls', 'reconfigured'] as const
/** Faults of histories with batches for V3. `pace` makes V3 execute the records of a batch slowly, one after another. */
const batchKinds = ['pace'] as const
/** Faults of histories in which V2 serves too. `flips` changes the stage. */
const stagedKinds = ['flips', 'lostV2Replies', 'slowV2'] as const
export type FaultKind = (
  typeof faultKinds | typeof rareKinds | typeof batchKinds | typeof stagedKinds
)[number]

/** The size of a history, which shrinking reduces. */
export interface Scale {
  readonly instances: number
  readonly clients: number
  readonly schools: number
  /** The number of keys that the clients of a school write to. */
  readonly keys: number
  readonly batchesPerClient: number
  readonly maxRecords: number
  /** The longest pause of a client between two batches. */
  readonly thinkMs: number
  readonly faults: ReadonlySet<FaultKind>
  /** The possible rates of faults. A rate is drawn for each kind of fault. */
  readonly rates: readonly [number, ...number[]]
}

interface Profile extends Partial<Scale> {
  readonly without?: readonly FaultKind[]
}

/**
 * Combinations of faults that have revealed defects which no single fault revealed. Their histories are small, so that the faults coincide.
 */
const profiles: readonly [Profile, ...Profile[]] = [
  // An instance is paused for longer than its lease while it has records to post.
  {
    faults: new Set(['pause', 'slowRate', 'lostReplies', 'duplicates']),
    instances: 2,
    keys: 1,
    maxRecords: 6,
  },
  // A write for V2 waits for older writes on V3.
  {
    faults: new Set(['flips', 'pause', 'late', 'lostAfter', 'slowService', 'slowV2']),
    ...{ instances: 2, clients: 4, schools: 1, keys: 1, thinkMs: 100 },
  },
  // One process cannot reach the store while the others serve.
  { faults: new Set(['storeDown', 'flips', 'duplicates', 'impatience', 'slowV2']), instances: 2, keys: 1 },
  { faults: new Set(['storeDown', 'lostReplies']), clients: 4, batchesPerClient: 5, maxRecords: 1 },
  // The service stores values that replies do not show, and its clock goes back.
  {
    faults: new Set(['values', 'serviceTimes', 'lostAfter', 'cut']),
    ...{ clients: 1, keys: 1, batchesPerClient: 5, maxRecords: 1 },
  },
  // V2 receives two marks of a key at once, and the reply to the older mark is lost.
  {
    faults: new Set(['flips', 'lostV2Replies', 'slowV2', 'refusedConnections']),
    without: ['wallSteps', 'serviceTimes', 'values', 'drift'],
    ...{ instances: 1, clients: 4, schools: 1, keys: 1, batchesPerClient: 1, maxRecords: 1, thinkMs: 100 },
    rates: [0.3],
  },
  // At this rate, a batch of unknown outcomes needs several retries to be read back.
  {
    faults: new Set(['slowRate', 'lostAfter', 'lostBefore']),
    ...{ instances: 1, clients: 2, schools: 1, keys: 6, batchesPerClient: 2, maxRecords: 12, thinkMs: 100 },
  },
  // The service cuts comments, and its replies may repeat the posted values.
  {
    faults: new Set(['values', 'lostAfter']),
    without: ['serviceTimes', 'otherWriters'],
    ...{ instances: 1, clients: 1, keys: 1, batchesPerClient: 20, maxRecords: 1, thinkMs: 10 },
    rates: [0.3],
  },
  // The database forgets instance numbers.
  { faults: new Set(['failover', 'kill', 'pause']), instances: 2, batchesPerClient: 5 },
]

export function drawScale(random: Random): Scale {
  const density = random.pick([0.1, 0.25, 0.5])
  const { without = [], ...profile } = random.chance(0.3) ? random.pick(profiles) : {}
  const wanted = profile.faults ?? new Set()
  const faults = new Set<FaultKind>(faultKinds.filter((kind) => random.chance(density) || wanted.has(kind)))
  for (const kind of without) faults.delete(kind)
  // Only the time of a mark shows that another program wrote it, so no clock is set back in these histories (docs/decisions/012).
  if (faults.has('otherWriters'))
    for (const kind of ['serviceTimes', 'values', 'wallSteps'] as const) faults.delete(kind)
  // Lost commits excuse many findings, so most histories have no failover.
  if (random.chance(0.7) && !wanted.has('failover')) faults.delete('failover')
  const scale = {
    instances: random.pick([1, 1, 2, 2, 3]),
    clients: random.pick([1, 2, 3, 4, 4]),
    schools: random.pick([1, 1, 1, 2]),
    keys: random.pick([1, 1, 1, 2, 3]),
    batchesPerClient: random.pick([1, 2, 3, 5]),
    maxRecords: random.pick([1, 2, 3, 6]),
    thinkMs: random.pick([10, 100, 1_500]),
    rates: profile.faults === undefined ? ([0.02, 0.1, 0.3] as const) : ([0.1, 0.3] as const),
    ...profile,
    faults,
  }
  const isStaged = profile.faults === undefined ? random.chance(0.4) : wanted.has('flips')
  if (isStaged && !faults.has('otherWriters') && !faults.has('failover'))
    for (const kind of stagedKinds)
      if (kind === 'flips' || wanted.has(kind) || random.chance(0.4)) faults.add(kind)
  // V2 answers mismatches in its own way, so histories with V2 contain none.
  if (faults.has('flips')) faults.delete('otherIds')
  for (const kind of rareKinds) if (random.chance(0.15)) faults.add(kind)
  if (profile.faults !== undefined || !random.chance(0.4)) return scale
  // A `$batch` never has two records of a key, so long batches need many keys.
  for (const kind of [...batchKinds, 'lostAfter'] as const) faults.add(kind)
  return { ...scale, keys: 6, maxRecords: 12 }
}

/** The rate of each fault, or 0 if the history does not have the fault. */
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
  readonly storeDown: number
  readonly impatience: number
  readonly duplicates: number
  readonly lateRequests: number
  readonly lostReplies: number
  readonly lostV2Replies: number
}

export function drawRates(random: Random, { faults, rates }: Scale): Rates {
  const rate = (kind: keyof Rates): number => (faults.has(kind) ? random.pick(rates) : 0)
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
    storeDown: rate('storeDown'),
    impatience: rate('impatience'),
    duplicates: rate('duplicates'),
    lateRequests: rate('lateRequests'),
    lostReplies: rate('lostReplies'),
    lostV2Replies: rate('lostV2Replies'),
  }
}

/** Draws how the service changes values. Its treatment of times may change later. */
export function drawValues(random: Random, { faults }: Scale): ServiceHabits['values'] {
  const values: Record<string, unknown> = {}
  if (faults.has('values')) {
    const comments = [
      [],
      ['trim'],
      ['collapse'],
      ['lfToCrlf'],
      [{ cut: 12 }],
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
    values['times'] = random.pick([
      'keep',
      'keep',
      'keep',
      'seconds',
      'roundSeconds',
      'sqlDatetime',
      'minutes',
    ])
    values['clock'] = random.pick(['client', 'client', 'server'])
  }
  return valueRulesSchema.parse(values)
}

const HOUR_MS = 3_600_000

/** Draws another clock, precision or rounding of the service. */
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
