import type { RecordState } from './journal.ts'

const rightId = (what: string): string => `${what} Correct it in the client and send the mark in a new batch.`
const sendNew = 'Look the mark up in the service; where it is missing, send it in a new batch.'

/** The remedy for a dead letter, by its reason. */
const remedies: Readonly<Record<string, string>> = {
  ATT_VAL_2: rightId('The service does not know the AttendableEvent.'),
  ATT_VAL_3: rightId('The service does not know the SchoolAttendanceCode.'),
  HTTP_400: rightId('The service refused the record without saying why.'),
  HTTP_401: 'The service did not take the token. Renew the credentials, then send the mark in a new batch.',
  HTTP_403:
    'The credentials lack the security domain Attendance. Have it granted, then send the mark in a new batch.',
  HTTP_404: 'The path of V3 is wrong, or the record is gone. Check upstreams.v3.baseUrl.',
  fault: rightId('The record could not be read.'),
  dropped:
    'The ids of header and body differed, and the partner is set to drop such records. Use one id, or quirks.mismatch: post.',
  unreadable: `This version of Markbridge cannot read its request. ${sendNew}`,
  damaged: `The journal's row of its request or its answers was changed or damaged; markbridge journal ls says whether more is. ${sendNew}`,
  noCredentials: `Its partner sent nothing for a day, and the journal has no key to keep credentials with: set journal.keys. ${sendNew}`,
  noPartner: `Its partner was not in the configuration for a day. ${sendNew}`,
  noToken: `The token endpoint gave no token for a day. Check the partner's client credentials. ${sendNew}`,
  superseded: 'Nothing: a newer mark for the same learner and event was confirmed.',
  gaveWay: `There were no credentials to finish it, and a newer mark for the same learner and event replaced it. Set journal.keys, so that credentials are stored.`,
  overwritten: 'Another client has written a mark since. Compare both in the service and keep the right one.',
  notConnected:
    'V3 could not be reached for a day. Check its address and the network, then send the mark in a new batch.',
  unavailable: 'V3 did not accept writes for a day. Send the mark in a new batch when it does.',
  throttled:
    'V3 refused calls because of its rate limit for a day. Check callsPerSecond and other users of the key, then send the mark in a new batch.',
  queueFull: 'The queue of calls was full. Send the mark in a new batch when there is less load.',
  budget: 'There was no time left for it. Send the mark in a new batch.',
  batchRefused: 'V3 refused a whole $batch. Set v3.writeMode to single, then send the mark in a new batch.',
  redirected:
    'V3 answered with another address. Correct upstreams.v3.baseUrl, then send the mark in a new batch.',
  connectionLost: sendNew,
  timeout: sendNew,
  unreadableReply: sendNew,
  serverError: sendNew,
  otherRecord: sendNew,
}

/** The remedy for a record. */
export function remedyFor(state: RecordState, reason: string | undefined): string {
  const known = reason === undefined ? undefined : remedies[reason]
  if (known !== undefined) return known
  return state === 'unknown' ? sendNew : rightId('The service refused the record.')
}
