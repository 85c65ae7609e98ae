import type { AcceptedCredentials } from '../partners/index.ts'
import type { LiveSeen } from '../rollout/seen/live-seen.ts'

/** The credentials of clients, with a note of what V3 says last to those of each partner. */
export function noteCredentials(
  accepted: AcceptedCredentials,
  seen: Pick<LiveSeen, 'credentials'>,
): AcceptedCredentials {
  return {
    ...accepted,
    accept: (client) => {
      accepted.accept(client)
      seen.credentials(client.partner.id, 'accepted')
    },
    deny: (client) => {
      accepted.deny(client)
      seen.credentials(client.partner.id, 'refused')
    },
  }
}
