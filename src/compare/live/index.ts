export { createAskSides } from './ask-sides.ts'
export { fingerprintOf, headOf, type OfferedExchange, type ServedRecord, sizeOf } from './exchange.ts'
export {
  type CheckEnd,
  checksOf,
  comparedPercent,
  createComparisonEngine,
  isCompared,
  keysOf,
  type LiveComparison,
} from './live-comparison.ts'
export { createPace, type PaceRefusal } from './pace.ts'
export { type ExchangeKind, keptFieldsOf, type WireExchange, type WireReply } from '../wire-exchange.ts'
