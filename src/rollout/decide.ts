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
