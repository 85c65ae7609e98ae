export {
  type AcceptedCredentials,
  createAcceptedCredentials,
  createTokenVerdicts,
  isSameCredentials,
  ownDenialOf,
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
