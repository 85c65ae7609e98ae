export {
  type AcceptedCredentials,
  createAcceptedCredentials,
  createQueueKeys,
  createTokenVerdicts,
  isSameCredentials,
  ownDenialOf,
  type QueueKeys,
  type TokenVerdict,
  type TokenVerdicts,
} from './credentials.ts'
export {
  authoriseClient,
  authoriseWithout,
  createAuthorise,
  createRecogniseClient,
  type Partner,
  unitOf,
} from './partner.ts'
export { createRegistry, longestReadBackMs, type PartnerRegistry } from './registry.ts'
