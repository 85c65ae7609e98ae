import type { Partner } from '../../partners/partner.ts'
import { type RequestKind, type Stage, type StageEntry, stageTable } from '../../rollout/index.ts'
import type { CheckKind } from '../compared-exchange.ts'

/** True for an exchange that is to be compared: drawn for each, since clients choose all else that it could follow from. */
export function isDrawn(
  entry: Pick<StageEntry, 'side' | 'stage'>,
  kind: RequestKind,
  partner: Partner,
  random: () => number,
): boolean {
  const percent = percentOf(entry, kind, partner)
  return percent > 0 && (percent >= 100 || random() * 100 < percent)
}

/** True where exchanges of the partner are compared. */
export const isCompared = (
  { compare, checkV2Percent }: Pick<Partner, 'compare' | 'checkV2Percent'>,
  stage: Stage,
): boolean => stage !== 'legacy' && (stage === 'shadow' ? compare.percent > 0 : checkV2Percent > 0)

/** The checks that an offered exchange is for. */
export function checksOf(exchange: object): readonly CheckKind[] {
  if ('request' in exchange) return ['reply', 'visible']
  return 'records' in exchange ? ['readBack'] : ['answers']
}

/** The share of the exchanges that is compared. */
function percentOf(
  { stage, side }: Pick<StageEntry, 'side' | 'stage'>,
  kind: RequestKind,
  partner: Partner,
): number {
  const { compares } = stageTable[stage][kind]
  if (compares === 'nothing') return 0
  if (stage === 'shadow') return side === 'v2' ? partner.compare.percent : 0
  // Without V2 there is nothing to read back.
  return side === 'v3' && partner.v2 !== undefined ? partner.checkV2Percent : 0
}
