export { createAcceptedCredentials } from './accepted-credentials.ts'
export { createIdentify } from './owner.ts'
export { authoriseWithout, createAuthorise, type Partner } from './partner.ts'
export { createShares } from './shares.ts'
