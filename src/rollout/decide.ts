import { createHmac } from 'node:crypto'

import type { RequestKind, Side, Stage, StageSetting } from './stage.ts'

/** What a stage means for one kind of request. */
export interface StageRule {
  /** `unit`: the side of the unit, by the share of `canary`. */
  readonly serves: Side | 'unit'
  /**
   * What may be compared: `reply` sets the reply that the adapter would have built against that of V2 and reads V3 back; `answers` sets
   * answer against answer; `readBack` reads on V2 what V3 served.
   */
  readonly compares: 'nothing' | 'reply' | 'answers' | 'readBack'
}

const rule = (serves: StageRule['serves'], compares: StageRule['compares'] = 'nothing'): StageRule => ({
  serves,
  compares,
})

type Rules = Readonly<Record<RequestKind, StageRule>>

/** Paths of V3 go to V3 at every stage. */
const alike = (writes: StageRule, reads: StageRule, documents: StageRule, otherV2 = documents): Rules => ({
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

/** Who serves what, and what may be compared: the one table, which docs/migration.md has too. A write never goes to both sides. */
export const stageTable: Readonly<Record<Stage, Rules>> = {
  legacy: alike(v2, v2, v2),
  shadow: alike(rule('v2', 'reply'), rule('v2', 'answers'), v2),
  canary: alike(rule('unit', 'readBack'), rule('unit', 'answers'), unit, v2),
  v3: alike(rule('v3', 'readBack'), rule('v3', 'answers'), v3),
  complete: alike(v3, v3, v3),
}

/** A request as far as its stage decides. */
export interface StagedRequest {
  readonly kind: RequestKind
  /** The school that it is for, or its owner where requests name none. */
  readonly unit: string
}

/**
 * Decides which side serves a request; pure. A share moves units in the order of their positions: raising it moves none back to V2, and
 * lowering it moves those first that came last. `secret` gives units their positions. Undefined: the side is that of the unit, and the
 * secret is not known, since the journal could not be reached yet.
 */
export function decide(
  { stage, percent, always, never }: StageSetting,
  partner: string,
  { kind, unit: name }: StagedRequest,
  secret: () => Uint8Array | undefined,
): Side | undefined {
  const { serves } = stageTable[stage][kind]
  if (serves !== 'unit') return serves
  const key = secret()
  if (key === undefined) return undefined
  if (never.includes(name)) return 'v2'
  return always.includes(name) || positionOf(key, partner, name) * 100 < percent ? 'v3' : 'v2'
}

/** 48 bits fit a number exactly. */
const BYTES = 6

/**
 * The place of a unit among all units of its partner, 0 up to 1: it stays the same over restarts, instances and changes of the share, and
 * without the secret it cannot be chosen.
 */
export function positionOf(secret: Uint8Array, partner: string, name: string): number {
  const digest = createHmac('sha256', secret)
    .update(JSON.stringify([partner, name]))
    .digest()
  return digest.readUIntBE(0, BYTES) / 2 ** (8 * BYTES)
}

/** A partner as far as its stage goes. */
export interface StagedPartner {
  readonly id: string
  /** The stage of the configuration file, at which the partner begins. */
  readonly fileStage: StageSetting
}

/** How much the journal has to know of a write that V2 serves, before its last byte is sent there. */
export type KnownWrite = 'nothing' | 'identity' | 'keys'

/** One request on the side that was decided for it. It ends there. */
export interface StageEntry {
  readonly side: Side
  readonly stage: Stage
  /** The revision of the stage that it was decided by; 0: that of the file. */
  readonly revision: number
  /** For writes that V2 serves. */
  readonly known: KnownWrite
  /**
   * False once this instance may have been taken for dead since: another one may serve the unit on the other side by now. To be asked
   * right before a write is made durable, or before the byte is sent that completes it; nothing of it was sent then, and the request
   * enters again. Reads two clocks.
   */
  isCurrent(): boolean
  /** True while the store of stages answers this instance: a journal in the same database is then slow rather than gone. */
  isStoreAnswering(): boolean
  /** To be called once the request is over: then nothing of it is under way on its side. Calling it again changes nothing. */
  leave(): void
}

/** The stages of all partners while the adapter runs. */
export interface LiveStages {
  /**
   * Decides the side of a request and counts it there until `leave`. A write whose side is about to change waits, bounded. Errors:
   * `ADP_STAGE_UNKNOWN` (503) where the stage cannot be known in time; nothing was sent then.
   */
  enter(partner: StagedPartner, request: StagedRequest): StageEntry | Promise<StageEntry>
}

/**
 * The stages of the configuration file alone, for an adapter without a journal: nothing is kept of a write that V2 serves, so only stages
 * are allowed that serve all units on one side.
 */
export function createFileStages(): LiveStages {
  return {
    enter: ({ fileStage: { stage } }, { kind }) => ({
      side: stageTable[stage][kind].serves === 'v3' ? 'v3' : 'v2',
      stage,
      revision: 0,
      known: 'nothing',
      isCurrent: () => true,
      isStoreAnswering: () => false,
      leave: () => undefined,
    }),
  }
}
