import type { RecordState } from './lifecycle.ts'

/** The reason why a record is not confirmed, worded as the end of a sentence, and the operator's remedy if nothing else settles the record. */
interface Cause {
  readonly cause: string
  readonly remedy: string
}

const correct = 'Correct the record in the client, then send the record in a new batch.'
const lookUp = 'Look the mark up in the service. If the mark is missing, send the mark in a new batch.'
const sendNew = 'Send the mark in a new batch.'

const causes: Readonly<Record<string, readonly [cause: string, remedy: string]>> = {
  ATT_VAL_2: [
    'the service does not know the event',
    'Correct AttendableEvent in the client, then send the record in a new batch.',
  ],
  ATT_VAL_3: [
    'the service does not know the attendance code',
    'Correct SchoolAttendanceCode in the client, then send the record in a new batch.',
  ],
  HTTP_400: ['the service refused the record without saying why', correct],
  HTTP_401: ['the service rejected the token', `Renew the credentials. ${sendNew}`],
  HTTP_403: [
    'the credentials lack the security domain Attendance',
    `Ask for this security domain. ${sendNew}`,
  ],
  HTTP_404: ['the path of V3 is wrong, or the record no longer exists', 'Check upstreams.v3.baseUrl.'],
  part: ['V2 refused the record', correct],
  fault: ['the adapter could not read the record', correct],
  dropped: [
    'the ids in the header and the body of the batch differed, and quirks.mismatch drops such records',
    'Use one id, or set quirks.mismatch to post.',
  ],
  unreadable: ['this version of Markbridge cannot read the stored request', lookUp],
  damaged: [
    'the stored request or reply is damaged or was changed',
    `markbridge journal ls shows whether other data is damaged. ${lookUp}`,
  ],
  noCredentials: [
    'no request of the client brought credentials, and a journal without a key stores none',
    `Set journal.keys. ${lookUp}`,
  ],
  noPartner: ['the partner is not in the configuration', lookUp],
  noToken: ['the token endpoint issues no token', `Check the client credentials of the partner. ${lookUp}`],
  superseded: ['a newer mark for the same learner and event was confirmed', 'There is nothing to do.'],
  gaveWay: [
    'there were no credentials to finish the record, and a newer mark for the same learner and event replaced it',
    'Set journal.keys, so that the journal stores credentials.',
  ],
  overwritten: [
    'another program wrote a newer mark',
    'Compare both marks in the service, and keep the right mark.',
  ],
  notConnected: ['V3 could not be reached', `Check the address of V3 and the network. ${sendNew}`],
  notSent: ['V2 could not be reached', `Check the address of V2 and the network. ${sendNew}`],
  unavailable: ['V3 did not accept writes', `Wait until V3 accepts writes. ${sendNew}`],
  throttled: [
    'V3 rejected the calls because of its rate limit',
    `Check callsPerSecond and other users of the subscription key. ${sendNew}`,
  ],
  ownCredentials: [
    'V3 denied the credentials that the configuration has for the partner',
    `Correct these credentials. ${sendNew}`,
  ],
  queueFull: ['the queue of calls was full', `Wait until there is less load. ${sendNew}`],
  budget: ['the time limit of the request was reached', sendNew],
  batchRefused: ['V3 refused a whole $batch', `Set v3.writeMode to single. ${sendNew}`],
  redirected: ['V3 redirected the request to another address', `Correct upstreams.v3.baseUrl. ${sendNew}`],
  stopped: ['the adapter stopped before it posted the record', sendNew],
  leaseLost: ['the instance could not prove its lease in the journal', sendNew],
  connectionLost: ['the connection broke before the response arrived', lookUp],
  timeout: ['the response did not arrive in time', lookUp],
  unreadableReply: ['the response cannot be read', lookUp],
  serverError: ['the service answered with a server error', lookUp],
  otherRecord: ['the response is about another record', lookUp],
  notReadBack: ['V3 could not be read to look for the mark', lookUp],
  stillTried: ['the adapter may still post the record', lookUp],
  stillExecuting: ['V3 may still be executing the $batch of the record', lookUp],
  replyTooLarge: ['the reply of V2 was too large to be stored', lookUp],
  noParts: ['the reply of V2 does not have a part for each record', lookUp],
}

/**
 * Describes why a record is not confirmed. For a reason without an entry in `causes`, such as most codes of the service, the description
 * depends only on the state.
 */
export function describeCause(state: RecordState, reason: string | undefined): Cause {
  const [cause, remedy] = (reason === undefined ? undefined : causes[reason]) ?? [
    state === 'refused' ? 'the service refused the record' : 'the cause is not known',
    state === 'refused' ? correct : lookUp,
  ]
  return { cause, remedy }
}

export const formatCause = ({ cause, remedy }: Cause): string =>
  `${cause.charAt(0).toUpperCase()}${cause.slice(1)}. ${remedy}`
