import type { Stage } from '../../../src/rollout/stage.ts'
import type { ClockKind } from '../clocks/clocks.ts'
import type { LoadOptions } from '../load/load.ts'
import type { FaultShares } from '../proxy/fault.ts'
import type { KillPlan } from '../supervisor/supervisor.ts'
import type { StormName } from './storms.ts'

export const PARTNER = 'acme'

/** The adapters, clients and faults of a run. */
export interface Scenario {
  readonly name: string
  readonly store: 'none' | 'sqlite' | 'postgres'
  /** The number of adapters that share the store. Default: 1. */
  readonly instances?: number
  /** The number of processes of each adapter. Default: 1. */
  readonly workers?: number
  /** Default: 10 s. */
  readonly leaseMs?: number
  /** How processes are paused, for 0.2 to 5 leases, or `undefined` if they are not paused. */
  readonly pauses?: ScenarioPauses
  /** How clocks are stepped by hours, ahead and back, or `undefined` if they are not stepped. */
  readonly clock?: ClockKind
  /** Modules with additional faults that are loaded into the adapters. */
  readonly imports?: readonly string[]
  /** How the processes are killed, or `undefined` if they are not killed. */
  readonly kills?: Pick<KillPlan, 'failpointShare' | 'lifeMs'>
  /**
   * The number of clients with their own token, which the adapter must not use for another client. Default: all clients share one token.
   */
  readonly clients?: number
  readonly storms?: readonly StormName[]
  /** Faults of the connections between adapter and service. */
  readonly behind?: FaultShares
  /** Faults of the connections between client and adapter. */
  readonly before?: FaultShares
  /** How records are sent to the service. Default: `single`. */
  readonly writeMode?: 'single' | 'batch'
  /** How the service treats a second mark of the same learner and session. Default: `replace`. */
  readonly onExisting?: 'replace' | 'duplicate' | 'conflict'
  /** How the service changes values, in the form of `PUT /_sandbox/values` (docs/sandbox.md). */
  readonly values?: Readonly<Record<string, unknown>>
  /** True if the clock, zone, precision and rounding of the service change during the run. */
  readonly changingTimes?: boolean
  readonly service?: readonly string[]
  /** The number of the service's latest events that receive writes. Default: all. */
  readonly lastEvents?: number
  /** The time from PostgreSQL's readiness until it crashes and starts again. Default: it does not crash. */
  readonly storeLivesMs?: number
  /** True if the journal's file is damaged between and during the lives of the adapter. The remaining journal is adopted. */
  readonly damaged?: boolean
  /** Faults of the connections between adapter and PostgreSQL. */
  readonly storeWay?: FaultShares
  /**
   * The pauses before the adapter reads a lost write back. Their sum must exceed the time for which a read is stale. Default: 50, 100, 200
   * ms.
   */
  readonly readBackAfterMs?: readonly number[]
  /** How the stage of the partner is changed repeatedly, with V2 on its own port, or `undefined` if V3 alone serves. */
  readonly stages?: ScenarioStages
  /** Differences from the usual behaviour of the clients (`usualLoad`). */
  readonly load?: Partial<Omit<LoadOptions, 'seed' | 'url' | 'samples'>>
}

export interface ScenarioStages {
  /** The stage of the partner at the start of the run. */
  readonly begin: Stage
  readonly schools: number
  /** The number of operators who change the stage concurrently. */
  readonly operators: number
  /** The longest time between two changes of an operator. */
  readonly gapMs: number
  /** How long a step forward waits for the instances to drain. */
  readonly drainMs: number
  /**
   * `rollout.resendWindowMs` of the configuration. After this time no client resends a batch that V2 may have received without an entry in
   * the journal.
   */
  readonly resendWindowMs: number
  readonly behindV2?: FaultShares
}

interface ScenarioPauses {
  /** The number of lanes. Each lane pauses one process at a time. */
  readonly lanes: number
  /** The longest time between two pauses of a lane. */
  readonly gapMs: number
  /** True if the service and the store are also paused, for short times. */
  readonly others?: boolean
}

/** Clients that pause before each batch, so that they use little processor time. */
const calm = { thinkMs: 200 } as const
/** Batches with short replies, so that more of the time is spent on starts and ends of processes. */
const small = { maxRecords: 7 } as const

const shaky = { refuse: 0.01, resetBefore: 0.02, resetAfter: 0.04, truncate: 0.03, stall: 0.05 } as const
/** A partner with four schools that two operators move back and forth between the stages. */
const stages = {
  begin: 'legacy',
  schools: 4,
  operators: 2,
  gapMs: 1_000,
  drainMs: 2_000,
  resendWindowMs: 2_000,
  behindV2: shaky,
} as const
const staged = {
  ...small,
  maxDelayMs: 400,
  patienceMs: 4_000,
  replayShare: 0.3,
  replayAfterMs: 800,
  impatience: 0.1,
  thinkMs: 100,
} as const

/** Returns a scenario with kills and lost replies, and with a service that stores other values than it receives. */
function altered(name: string, values: NonNullable<Scenario['values']>): Scenario {
  return {
    name,
    store: 'sqlite',
    values,
    kills: { failpointShare: 0.3, lifeMs: [100, 900] },
    behind: { resetBefore: 0.03, resetAfter: 0.15, truncate: 0.05 },
    load: small,
  }
}

export const scenarios = {
  killed: {
    name: 'killed, SQLite',
    store: 'sqlite',
    kills: { failpointShare: 0.5, lifeMs: [20, 250] },
    load: small,
  },
  killedInStorms: {
    name: 'killed in storms',
    store: 'sqlite',
    kills: { failpointShare: 0.3, lifeMs: [50, 400] },
    storms: ['unavailable', 'failing', 'resetBefore', 'resetAfter', 'truncated'],
  },
  killedWhileStale: {
    name: 'killed, stale reads and late answers',
    store: 'sqlite',
    kills: { failpointShare: 0.4, lifeMs: [50, 600] },
    storms: ['stale', 'late'],
    readBackAfterMs: [100, 300, 600],
  },
  clients: {
    name: 'killed, clients with tokens of their own',
    store: 'sqlite',
    clients: 4,
    kills: { failpointShare: 0.3, lifeMs: [100, 900] },
    behind: { resetBefore: 0.03, resetAfter: 0.05 },
    load: small,
  },
  duplicates: {
    name: 'a service that keeps duplicates',
    store: 'sqlite',
    onExisting: 'duplicate',
    kills: { failpointShare: 0.3, lifeMs: [50, 600] },
    behind: { resetBefore: 0.03, resetAfter: 0.03, truncate: 0.03 },
  },
  conflicts: {
    name: 'a service that takes one mark',
    store: 'sqlite',
    onExisting: 'conflict',
    // At this scale there are many learners and sessions without marks, so that not every write is a conflict.
    service: ['--scale', 'school', '--db', ':memory:'],
    lastEvents: 2,
    kills: { failpointShare: 0.3, lifeMs: [50, 600] },
    behind: { resetBefore: 0.03, resetAfter: 0.05, truncate: 0.05 },
    before: { resetBefore: 0.05, resetAfter: 0.1, truncate: 0.05 },
    load: { thinkMs: 300, maxRecords: 8, impatience: 0.2, replayShare: 0.3 },
  },
  broken: {
    name: 'connections broken',
    store: 'sqlite',
    behind: { refuse: 0.02, resetBefore: 0.03, resetAfter: 0.03, truncate: 0.03, stall: 0.02, slow: 0.01 },
    storms: ['resetBefore', 'resetAfter', 'truncated', 'unreadable'],
    load: calm,
  },
  batched: {
    name: 'V3 batches broken',
    store: 'sqlite',
    writeMode: 'batch',
    kills: { failpointShare: 0.3, lifeMs: [50, 600] },
    behind: { resetBefore: 0.05, resetAfter: 0.05, truncate: 0.1 },
  },
  storms: {
    name: '429 and 503 storms',
    store: 'sqlite',
    storms: ['tooMany', 'unavailable', 'failing', 'silent', 'slow'],
    load: calm,
  },
  retries: {
    name: 'clients send again',
    store: 'sqlite',
    before: { refuse: 0.02, resetBefore: 0.1, resetAfter: 0.15, truncate: 0.15, stall: 0.05 },
    load: { ...calm, impatience: 0.3, replayShare: 0.5 },
  },
  workers: {
    name: 'two workers, SQLite',
    store: 'sqlite',
    workers: 2,
    // No failpoints: a worker that dies while it starts also ends its parent, which the supervisor would report as a crash.
    kills: { failpointShare: 0, lifeMs: [500, 2_000] },
    behind: { resetBefore: 0.01, resetAfter: 0.01 },
  },
  restarted: {
    name: 'PostgreSQL restarted',
    store: 'postgres',
    storeLivesMs: 1_500,
    behind: { resetAfter: 0.02 },
    load: { ...calm, ...small },
  },
  storeBroken: {
    name: 'connections to PostgreSQL broken',
    store: 'postgres',
    kills: { failpointShare: 0.3, lifeMs: [100, 1_500] },
    storeWay: { refuse: 0.05, cut: 0.3, halt: 0.15 },
    behind: { resetAfter: 0.02 },
  },
  clocks: {
    name: 'clocks stepped, SQLite',
    store: 'sqlite',
    instances: 2,
    leaseMs: 2_000,
    clock: 'injected',
    kills: { failpointShare: 0.3, lifeMs: [500, 3_000] },
    behind: { resetBefore: 0.02, resetAfter: 0.05, stall: 0.1 },
    load: small,
  },
  systemClocks: {
    name: 'clocks of the system stepped while processes are paused, SQLite',
    store: 'sqlite',
    instances: 2,
    leaseMs: 2_000,
    clock: 'system',
    pauses: { lanes: 1, gapMs: 600 },
    behind: { resetAfter: 0.05, stall: 0.1 },
    load: small,
  },
  clocksTogether: {
    name: 'clocks of three instances stepped apart, PostgreSQL',
    store: 'postgres',
    instances: 3,
    leaseMs: 2_000,
    clock: 'injected',
    pauses: { lanes: 1, gapMs: 600 },
    kills: { failpointShare: 0.2, lifeMs: [1_000, 8_000] },
    behind: { resetBefore: 0.01, resetAfter: 0.02, stall: 0.1 },
    load: small,
  },
  cutTimes: altered('times cut to seconds', { times: 'seconds', nulls: ['minutesLateToZero'] }),
  roundedTimes: altered('times rounded as SQL does', { times: 'sqlDatetime', comments: ['trim'] }),
  roundedMinutes: altered('times rounded to minutes', {
    times: 'roundMinutes',
    comments: ['nfc', 'crlfToLf'],
  }),
  ownTimesAhead: altered('own times, ahead', {
    clock: 'server',
    offsetMs: 90_000,
    comments: ['collapse', { cut: 40 }],
  }),
  ownTimesBehind: altered('own times, behind', { clock: 'server', offsetMs: -90_000, nulls: ['zeroToNull'] }),
  hiddenValues: altered('values altered, echoed as posted', {
    times: 'roundSeconds',
    comments: ['trim', 'nfd', 'lfToCrlf', { cut: 64 }],
    nulls: ['minutesLateToZero'],
    echo: 'posted',
  }),
  killedWhileTimesChange: {
    name: 'killed while the times of the service change',
    store: 'sqlite',
    changingTimes: true,
    kills: { failpointShare: 0.3, lifeMs: [100, 900] },
    behind: { resetBefore: 0.05, resetAfter: 0.15, truncate: 0.05 },
    load: small,
  },
  damaged: {
    name: 'journal damaged, SQLite',
    store: 'sqlite',
    damaged: true,
    service: ['--scale', 'school', '--db', ':memory:'],
    kills: { failpointShare: 0, lifeMs: [200, 800] },
    behind: { resetAfter: 0.02 },
    // Each write has its own learner or session, because only the lost journal knew the order of two marks of one learner and session.
    load: { ...small, uniqueKeys: true, replayShare: 0, thinkMs: 200 },
  },
  paused: {
    name: 'three instances paused, SQLite',
    store: 'sqlite',
    instances: 3,
    leaseMs: 1_000,
    // One of the three processes always runs and can take over.
    pauses: { lanes: 2, gapMs: 300 },
    behind: { resetBefore: 0.02, resetAfter: 0.02, stall: 0.1 },
    load: small,
  },
  pausedWorkers: {
    name: 'workers and their parent paused, SQLite',
    store: 'sqlite',
    workers: 3,
    leaseMs: 1_000,
    pauses: { lanes: 2, gapMs: 600, others: true },
    behind: { resetAfter: 0.02, stall: 0.1 },
    load: small,
  },
  pausedTogether: {
    name: 'three instances paused and killed, PostgreSQL',
    store: 'postgres',
    instances: 3,
    leaseMs: 1_000,
    pauses: { lanes: 2, gapMs: 300, others: true },
    kills: { failpointShare: 0.2, lifeMs: [1_000, 8_000] },
    behind: { resetBefore: 0.01, resetAfter: 0.01, stall: 0.1 },
    load: { ...small, connections: 12 },
  },
  together: {
    name: 'three instances, PostgreSQL',
    store: 'postgres',
    instances: 3,
    kills: { failpointShare: 0.3, lifeMs: [500, 5_000] },
    behind: { resetBefore: 0.01, resetAfter: 0.01 },
    load: { ...small, connections: 12 },
  },
  flips: {
    name: 'stages changed, two instances, PostgreSQL',
    store: 'postgres',
    instances: 2,
    leaseMs: 1_000,
    stages,
    kills: { failpointShare: 0.2, lifeMs: [1_000, 5_000] },
    pauses: { lanes: 1, gapMs: 3_000, others: true },
    behind: shaky,
    before: shaky,
    storeWay: { cut: 0.05, halt: 0.05 },
    load: staged,
  },
  flipsInFile: {
    name: 'stages changed, two workers, SQLite',
    store: 'sqlite',
    workers: 2,
    leaseMs: 1_000,
    stages,
    kills: { failpointShare: 0, lifeMs: [2_000, 6_000] },
    behind: shaky,
    before: shaky,
    load: staged,
  },
} as const satisfies Record<string, Scenario>
