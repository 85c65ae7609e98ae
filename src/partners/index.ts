export { type AcceptedCredentials, createAcceptedCredentials } from './accepted-credentials.ts'
export { createIdentify } from './owner.ts'
export {
  authoriseClient,
  authoriseWithout,
  createAuthorise,
  createRecogniseClient,
  type Partner,
} from './partner.ts'
export { unitOf } from './unit.ts'
export { createQueueKeys, type QueueKeys } from './queue-keys.ts'
export { createRegistry, longestReadBackMs, type PartnerRegistry } from './registry.ts'
