import { createHmac } from 'node:crypto'

import type { RequestKind, Side, Stage, StageSetting } from './stage.ts'

export interface StageRule {
  /** The side that serves the request. `unit` means that the side depends on the unit and on the percentage of `canary`. */
  readonly serves: Side | 'unit'
  /**
   * The comparison of a request. `reply` compares V2's reply with the reply that the adapter would have built from the marks on V3.
   * `answers` compares the responses of both sides to a read. `readBack` reads a write that V3 served back from V2.
   */
  readonly compares: 'nothing' | 'reply' | 'answers' | 'readBack'
}

const rule = (serves: StageRule['serves'], compares: StageRule['compares'] = 'nothing'): StageRule => ({
  serves,
  compares,
})

type Rules = Readonly<Record<RequestKind, StageRule>>

/** Builds the rules of a stage. Requests for V3 paths go to V3 at every stage. */
const rulesOf = (writes: StageRule, reads: StageRule, documents: StageRule, otherV2 = documents): Rules => ({
  batch: writes,
  record: writes,
  readFilter: reads,
  readKey: reads,
  registrations: reads,
  documents,
  otherV2,
  v3Path: rule('v3'),
})
const [v2, v3, unit] = [rule('v2'), rule('v3'), rule('unit')]

/** The side that serves each request at each stage, and what may be compared, as in docs/migration.md. No write ever goes to both sides. */
export const stageTable: Readonly<Record<Stage, Rules>> = {
  legacy: rulesOf(v2, v2, v2),
  shadow: rulesOf(rule('v2', 'reply'), rule('v2', 'answers'), v2),
  canary: rulesOf(rule('unit', 'readBack'), rule('unit', 'answers'), unit, v2),
  v3: rulesOf(rule('v3', 'readBack'), rule('v3', 'answers'), v3),
  complete: rulesOf(v3, v3, v3),
}

export interface StagedRequest {
  readonly kind: RequestKind
  /** The school of the request, or the owner of the request if requests do not name a school. */
  readonly unit: string
}

/** The rule that decides the side: the stage for all units, a list, or the percentage of `canary`. */
export type SideRule = 'stage' | 'never' | 'always' | 'percent'

/**
 * Decides which side serves a request. Raising the percentage never moves a unit back to V2. Lowering the percentage first moves the units
 * that moved to V3 last. Returns `undefined` if the side depends on the unit and the `secret` is unknown, because the journal could not be
 * reached yet.
 */
export function decideByRule(
  { stage, percent, always, never }: StageSetting,
  partner: string,
  { kind, unit: name }: StagedRequest,
  secret: () => Uint8Array | undefined,
): readonly [side: Side, rule: SideRule] | undefined {
  const { serves } = stageTable[stage][kind]
  if (serves !== 'unit') return [serves, 'stage']
  const key = secret()
  if (key === undefined) return undefined
  if (never.includes(name)) return ['v2', 'never']
  if (always.includes(name)) return ['v3', 'always']
  return [positionOf(key, partner, name) * 100 < percent ? 'v3' : 'v2', 'percent']
}

export const decide = (...given: Parameters<typeof decideByRule>): Side | undefined =>
  decideByRule(...given)?.[0]

/** Number of bytes of the digest that form the position. A JavaScript number represents their 48 bits exactly. */
const BYTES = 6

/**
 * Returns the position of a unit among all units of its partner, from 0 up to but not including 1. The position is the same in all
 * instances and at every percentage. Without the secret nobody can choose a unit with a certain position.
 */
export function positionOf(secret: Uint8Array, partner: string, name: string): number {
  const digest = createHmac('sha256', secret)
    .update(JSON.stringify([partner, name]))
    .digest()
  return digest.readUIntBE(0, BYTES) / 2 ** (8 * BYTES)
}

export interface StagedPartner {
  readonly id: string
  /** The stage with which the partner begins, from the configuration file. */
  readonly fileStage: StageSetting
}

/**
 * What the journal must store about a write that V2 serves before the write is sent: nothing, the batch alone (`identity`), or the batch
 * with the keys of its records.
 */
export type KnownWrite = 'nothing' | 'identity' | 'keys'

/** One request on the side that was decided for it. The request stays on that side until it ends. */
export interface StageEntry {
  readonly side: Side
  readonly stage: Stage
  /** The revision of the stage. 0 for the stage of the configuration file. */
  readonly revision: number
  readonly known: KnownWrite
  /**
   * Returns false if other instances may have declared this instance dead since the request entered, so that another instance may serve the
   * unit on the other side. Must be called immediately before a write for V3 is stored, or before the first byte of a write is sent to V2.
   * If the result is false, nothing may be sent, and the request gets 503 (`expectCurrent`).
   */
  isCurrent(): boolean
  /**
   * Returns true if the store of stages has responded lately. A journal that does not respond is then only slow and not unavailable,
   * because both use the same database.
   */
  isStoreAnswering(): boolean
  /** Reports that the request is over and that nothing is in progress on its side. Further calls have no effect. */
  release(): void
}

export interface LiveStages {
  /**
   * Decides the side of a request, and counts the request on that side until `release`. A write whose side is about to change waits for a
   * limited time. Throws `ADP_STAGE_UNKNOWN` (503), before anything is sent, if the stage cannot be determined in time.
   */
  enter(partner: StagedPartner, request: StagedRequest): StageEntry | Promise<StageEntry>
}

/** Creates stages from the configuration file. Does not support `canary`, at which the side depends on the unit. */
export function createFileStages(): LiveStages {
  return {
    enter: ({ fileStage: { stage } }, { kind }) => ({
      side: stageTable[stage][kind].serves === 'v3' ? 'v3' : 'v2',
      stage,
      revision: 0,
      known: 'nothing',
      isCurrent: () => true,
      isStoreAnswering: () => false,
      release: () => undefined,
    }),
  }
}
