import type { IncomingMessage } from 'node:http'

import type { Client } from './partner.ts'

/**
 * The unit that a request belongs to at `canary`: the school that its token names, else the one that a header names, else its owner. What
 * a client writes there moves its own requests only.
 */
export function unitOf({ partner, identity, owner }: Client, { headers }: IncomingMessage): string {
  if (identity.school !== undefined) return identity.school
  const { header } = partner.unit
  const named = header === undefined ? undefined : headers[header]
  return typeof named === 'string' && named !== '' ? named : owner
}
