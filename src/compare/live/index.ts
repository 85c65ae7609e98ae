export type { OfferedExchange, OfferedReply } from './offered-exchange.ts'
export { createReadAlong, type ReadAlong } from './read-along.ts'
export { createShadowOffers, type ShadowOffers } from './shadow-offers.ts'
