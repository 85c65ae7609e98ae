import type { QueueKey } from '../upstream/index.ts'
import { BoundedMap } from './bounded-map.ts'
import type { Authorisation, Partner } from './partner.ts'

/** The part of an authorisation that selects the share of a request. */
export interface QueueKeyOwner extends Pick<Authorisation, 'owner' | 'identity'> {
  readonly partner: Pick<Partner, 'id' | 'tokens'>
}

/** Whose share of connections, bytes and time a request uses. */
export interface QueueKeys {
  of(authorisation: QueueKeyOwner): QueueKey
  /** Says that V3, or V2, answered with success: requests with the same credentials use the share of their owner from now on. */
  accept(authorisation: QueueKeyOwner): void
}

/** Credentials that V3 has accepted; with more of them the oldest are newcomers again until the next answer. */
const MAX_ACCEPTED = 10_000

/** Creates the shares. Credentials are accepted, not owners: V3 verifies the claims of a token. */
export function createQueueKeys(): QueueKeys {
  const accepted = new BoundedMap<string, true>(MAX_ACCEPTED)
  return {
    of: (authorisation) => {
      const name = nameOf(authorisation)
      let isAccepted = false
      return {
        partner: authorisation.partner.id,
        owner: authorisation.owner,
        isAccepted: () => (isAccepted ||= accepted.get(name) === true),
      }
    },
    accept: (authorisation) => {
      accepted.set(nameOf(authorisation), true)
    },
  }
}

/** With tokens of the adapter's own, V3 sees no credentials of the client. */
function nameOf({ partner, owner, identity }: QueueKeyOwner): string {
  return partner.tokens === undefined ? identity.credentialsHash : owner
}
