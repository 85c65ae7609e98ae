import type { Events } from '../observability/events.ts'
import type { AcceptedCredentials, QueueKeys } from '../partners/index.ts'
import type { LiveSeen } from '../rollout/seen/live-seen.ts'

/**
 * The credentials of clients, with a note of what V3 says last to those of each partner. A refusal of credentials that no service has
 * accepted says nothing of the partner's.
 */
export function noteCredentials(
  accepted: AcceptedCredentials,
  seen: Pick<LiveSeen, 'credentials'>,
  queueKeys: Pick<QueueKeys, 'of'>,
  events: Pick<Events, 'ownCredentialsDenied'>,
): AcceptedCredentials {
  return {
    ...accepted,
    accept: (client) => {
      accepted.accept(client)
      seen.credentials(client.partner.id, 'accepted')
    },
    deny: (client) => {
      accepted.deny(client)
      if (queueKeys.of(client).isAccepted()) seen.credentials(client.partner.id, 'refused')
    },
    ownDenied: (partner, what) => {
      seen.credentials(partner, 'ownRefused')
      events.ownCredentialsDenied({ partner, what })
    },
  }
}
