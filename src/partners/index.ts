export { createAcceptedCredentials } from './accepted-credentials.ts'
export { createIdentify } from './owner.ts'
export { authoriseWithout, createAuthorise, type Partner } from './partner.ts'
export { createQueueKeys } from './queue-keys.ts'
