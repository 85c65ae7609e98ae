/**
 * The description of each key of the configuration, for editors: `partners[].v3.budgetMs` names a key of every entry of a list.
 * One sentence each; defaults and allowed values are in the schema.
 */
export const optionDocs: Readonly<Record<string, string>> = {
  listen: 'The address that the adapter listens on, and how it stops; a change needs a restart.',
  'listen.host': 'Address to listen on: loopback or an inner network, since TLS ends before the adapter.',
  'listen.port': 'TCP port; 0 selects a free one.',
  'listen.trustedProxies':
    'Addresses or ranges (10.0.0.0/8) of proxies whose X-Forwarded-Proto and X-Forwarded-For are trusted.',
  'listen.linkSecret': "Secret that signs next links instead of the journal's; 32 characters or more.",
  'listen.metrics': 'Callers that may read /metrics: those on this machine (loopback), or any.',
  'listen.drainMs': 'Time in milliseconds that clients have to read their replies when the adapter stops.',
  upstreams: 'The services behind the adapter; a change needs a restart.',
  'upstreams.v3': 'The V3 service.',
  'upstreams.v3.baseUrl': 'Address of V3, http or https, without user, query or fragment.',
  'upstreams.v3.connections': 'Maximum number of connections to V3.',
  'upstreams.v3.timeouts': 'Timeouts of calls to V3, in milliseconds.',
  'upstreams.v3.timeouts.connectMs': 'Time to open a connection.',
  'upstreams.v3.timeouts.acquireMs': 'Longest wait for a free connection.',
  'upstreams.v3.timeouts.headersMs': 'Time from the end of a request to the head of its reply.',
  'upstreams.v3.timeouts.bodyMs': 'Time between two pieces of a reply.',
  'upstreams.v2': 'The V2 service: needed by the stages at which it serves.',
  'upstreams.v2.baseUrl': 'Address of V2, http or https, without user, query or fragment.',
  'upstreams.v2.connections': 'Maximum number of connections to V2.',
  'upstreams.v2.timeouts': 'Timeouts of calls to V2, in milliseconds.',
  'upstreams.v2.timeouts.connectMs': 'Time to open a connection.',
  'upstreams.v2.timeouts.acquireMs': 'Longest wait for a free connection.',
  'upstreams.v2.timeouts.headersMs': 'Time from the end of a request to the head of its reply.',
  'upstreams.v2.timeouts.bodyMs': 'Time between two pieces of a reply.',
  limits: 'Limits of one request, and of all requests together; a reload changes them.',
  'limits.maxBodyBytes': 'Maximum bytes of a request body after decompression; a larger one gets 413.',
  'limits.maxParts': 'Maximum number of records, and of changesets, in one batch; more get 413.',
  'limits.maxPartHeaderBytes': 'Maximum bytes of the headers of one part; more get 400.',
  'limits.maxPartBytes': 'Maximum bytes of one record; the part of a larger one gets 400.',
  'limits.maxInFlightBytes':
    'Maximum bytes of request bodies and replies in memory, shared fairly between clients.',
  'limits.slowClients': 'Clients that are slower than this are disconnected.',
  'limits.slowClients.minBytesPerSecond': 'The slowest rate at which a client may send or read.',
  'limits.slowClients.headersMs': 'Time in milliseconds for the head of a request.',
  'limits.slowClients.uploadMs': 'Time in milliseconds before the rate of an upload is checked.',
  'limits.slowClients.replyMs': 'Time in milliseconds before the rate of reading a reply is checked.',
  journal: 'The durable memory of writes; a change needs a restart.',
  'journal.url':
    'sqlite:<file> for one machine, postgres://… for several, none for no journal; may be a secret.',
  'journal.keys': 'Encryption keys of the journal: the first encrypts, all decrypt.',
  'journal.keys[].id': 'Name of the key, stored with each row that it encrypts.',
  'journal.keys[].key': '32 bytes: 64 hexadecimal digits, or base64.',
  'journal.replayForMs': 'Time in milliseconds for which a repeated batch is answered from the journal.',
  'journal.keepPayloadsMs': 'Retention in milliseconds of requests and replies.',
  'journal.keepRecordsMs': 'Retention in milliseconds of the outcome of each record.',
  'journal.plaintext':
    'With keys: refuse rows that are not encrypted, or accept them until rows from before the first key are deleted.',
  'journal.markFile': 'PostgreSQL only: file for the last change that this instance has seen in the journal.',
  'journal.leaseMs':
    'Time in milliseconds for which an instance may post without renewing its lease; others take over after 1.2 times that.',
  rollout: 'How the stage of a partner changes; all but operators and drainMs need a restart.',
  'rollout.approval':
    'two: a step forward waits for the approval of a second operator, and a partner without a stored stage begins at legacy.',
  'rollout.operators':
    'Who may change stages, each with a token (default: every user of the system who can open the journal).',
  'rollout.operators[].name': 'Unique name of the operator in the audit trail.',
  'rollout.operators[].tokenSha256': 'SHA-256 of the token of the operator in hexadecimal; never printed.',
  'rollout.operators[].role':
    'operator changes stages and approves changes of others; approver approves and goes back; viewer only reads.',
  'rollout.drainMs':
    'Longest wait in milliseconds for the instances to drain before a step forward; the change is withdrawn then.',
  'rollout.resendWindowMs':
    'Time in milliseconds for which a batch that V2 served unrecorded may come again; canary is refused until it is over.',
  'rollout.stateFile':
    'File for the last stages that an instance has read (default: beside an SQLite journal; none with PostgreSQL).',
  'rollout.guards': 'What happens where V3 serves a partner worse than V2 does at the same time.',
  'rollout.guards.action':
    'back: the partner goes back to shadow; hold: it stays, and no step forward is taken; notify: log and metric only.',
  'rollout.guards.coolDownMs':
    'Time in milliseconds after a guard went back or holds in which no step forward is taken without --despite-hold; one that holds or notifies counts nothing in it.',
  'rollout.evidence': 'What has to be seen and compared before rollout advise says ready.',
  'rollout.evidence.limit':
    'Limit of the share of learners and days that differ: its upper confidence bound has to be below. 0.005 takes 598 of them without a difference.',
  'rollout.evidence.confidence': 'Confidence of that bound.',
  'rollout.evidence.comparedShare': 'Share of the sample that has to have been compared.',
  'rollout.evidence.schoolShare':
    'Share of the counted learners and days that one school may make up; a partner with fewer than five schools needs more than the default.',
  'rollout.evidence.days':
    'Days on which requests have to have been compared, and days that the partner has to have been at its stage.',
  'rollout.evidence.records': 'Distinct records that have to have been seen on the side that serves.',
  'rollout.evidence.batches': 'Batches that have to have been seen there.',
  'rollout.evidence.codes': 'Different attendance codes that have to have been seen there.',
  'rollout.evidence.traits':
    'What at least one compared record has to have had: late (minutes), comment, correction (of an earlier mark).',
  partners: 'The partners; the first one whose match fits a request serves it. A reload changes them.',
  'partners[].id': 'Unique name of the partner in logs, metrics and the journal.',
  'partners[].match':
    'How requests of this partner are recognised: any, subscriptionKeySha256, header or pathPrefix.',
  'partners[].match.any': 'Every request matches.',
  'partners[].match.subscriptionKeySha256':
    "SHA-256 of the subscription key in hexadecimal, or a list of the hashes of one client's keys.",
  'partners[].match.header': 'A header that the client sends.',
  'partners[].match.header.name': 'Name of the header, in any case.',
  'partners[].match.header.value': 'Value of the header, or a secret; never printed.',
  'partners[].match.pathPrefix': 'Beginning of the path, compared by whole decoded segments in any case.',
  'partners[].clients':
    'open: lets a partner that matches by any or pathPrefix use a key or tokens of its own; every caller of the address then writes with them.',
  'partners[].identity': 'How the clients of one partner are separated.',
  'partners[].identity.claims': 'Claims of a JWT bearer token that separate the batches of clients.',
  'partners[].stage':
    'Stage at which the partner begins: legacy, shadow, canary, v3 or complete. A stage that was set later, with markbridge rollout, wins. Once the partner has begun, the file may lower its stage and not raise it.',
  'partners[].stageOverride':
    'Lowers the stage, also while the journal cannot be reached; it never raises it. Once the journal can be reached, the lower stage is kept there.',
  'partners[].canary': 'The part of the traffic that V3 serves at stage canary.',
  'partners[].canary.percent': 'Share of the schools that V3 serves, 0 to 100.',
  'partners[].canary.unit': 'What stays together on one side: school.',
  'partners[].canary.claim': 'Claim of a JWT bearer token that names the school.',
  'partners[].canary.header':
    'Header that names the school, for tokens without that claim; without both, each client is one unit.',
  'partners[].canary.always': 'Schools that V3 serves whatever the share is.',
  'partners[].canary.never': 'Schools that V2 serves whatever the share is.',
  'partners[].check': 'What V3 serves at canary and v3 and is read back.',
  'partners[].check.v2': 'Share of these writes and reads that is compared with V2, in percent.',
  'partners[].compare.percent': 'Share of the exchanges at shadow that is compared, in percent.',
  'partners[].compare.settleMs':
    'How long the other side may take to show a mark, in milliseconds, before it counts as missing.',
  'partners[].v2': 'How V2 is called for this partner.',
  'partners[].v2.baseUrl': 'Address of V2 for this partner (default: upstreams.v2.baseUrl).',
  'partners[].v2.replay':
    'A repeated batch at shadow and canary: stored gives the whole reply that V2 gave to it, where the journal has it; relay sends V2 every batch, which then writes its marks again.',
  'partners[].layout':
    'Layout of batch replies: flat (the legacy contract), nested (generic OData clients, such as Microsoft.OData.Client or the SAP Cloud SDK), or auto (by the request).',
  'partners[].serviceHosts':
    'Allowed hosts of absolute URLs inside a batch, without scheme and port (default: any).',
  'partners[].quirks': "Deviations of the partner's client from the documented interface.",
  'partners[].quirks.dataEnvelope': 'true: records in {"d":…}, pages in {"d":{"results":[…]}}.',
  'partners[].quirks.msgtypeResponse': 'true: parts of a batch reply are application/http; msgtype=response.',
  'partners[].quirks.mismatch': 'Post or drop the records when the ids of header and body differ.',
  'partners[].errorMessages':
    'Texts of V2 for the codes of its errors, such as ATT_VAL_2, where they are not those of the adapter (compare learn finds them).',
  'partners[].unmappedFields':
    'Fields that are not in the V2 write form: strict refuses the record, pass forwards fields that V3 has, report drops and counts them.',
  'partners[].changeProcessName': 'ChangeProcessName of the marks in V3; null sends none.',
  'partners[].reads': 'How V2 reads are translated.',
  'partners[].reads.wideRange': 'A range over 90 days: split into windows, or refuse as V2 does.',
  'partners[].reads.needsRecordedBy': 'true: a V3 row without RecordedBy is not a recorded mark.',
  'partners[].reads.unmarkedCodes':
    'Attendance codes that mean "no mark": ids, or letters such as -, which the code lookup of V3 resolves.',
  'partners[].reads.filterUpstream':
    'true: V3 filters out rows without a recorded mark; false: the adapter does.',
  'partners[].reads.histories':
    'true: fill AttendanceHistorys from StatutoryAttendanceRecordHistorys, at one more call per 40 marks.',
  'partners[].compare': 'How what V2 and V3 answer is compared.',
  'partners[].compare.rules':
    'Differences that are accepted until a day: such a field counts as equivalent (docs/comparison.md).',
  'partners[].compare.rules[].name': 'Name of the rule in reports.',
  'partners[].compare.rules[].reason': 'Why the difference is accepted; reports show it.',
  'partners[].compare.rules[].owner': 'Who answers for the rule.',
  'partners[].compare.rules[].expires':
    'Last day of the rule, YYYY-MM-DD (UTC): afterwards the difference counts again.',
  'partners[].compare.rules[].path': 'Path of the field as reports show it, such as Comment.',
  'partners[].compare.rules[].when': 'What the difference must be; all that is given must hold.',
  'partners[].compare.rules[].when.kind': 'Kind of the difference.',
  'partners[].compare.rules[].when.v2Class': 'Class of the value of V2; the beginning of one ends with *.',
  'partners[].compare.rules[].when.v3Class': 'Class of the value of V3; the beginning of one ends with *.',
  'partners[].compare.rules[].when.trimmed': 'true: the texts are equal without blanks at their ends.',
  'partners[].compare.rules[].when.ignoreCase': 'true: the texts are equal in one case.',
  'partners[].compare.rules[].when.cutTo': 'The text of V3 is that of V2, cut to this many characters.',
  'partners[].compare.rules[].when.maxShiftSeconds': 'The times are at most this many seconds apart.',
  'partners[].record':
    'Keeps exchanges of this partner as files (docs/comparison.md); key or pseudonyms is required. A reload changes it.',
  'partners[].record.to':
    'Folder of the recordings, for this partner alone; it is created where it is missing.',
  'partners[].record.percent': 'Share of the exchanges that is recorded, in percent.',
  'partners[].record.key': 'Encrypts recordings: 32 bytes, as 64 hexadecimal digits or base64.',
  'partners[].record.pseudonyms':
    'true: replace every id, name and text, under a key that ends with the process. With key: under that one, in all processes alike.',
  'partners[].record.pseudonyms.key': '32 bytes: 64 hexadecimal digits, or base64.',
  'partners[].record.maxBytes': 'Bound of the folder in bytes: the oldest recordings are removed first.',
  'partners[].record.maxAgeDays': 'Days after which a recording is removed.',
  'partners[].v3': 'How V3 is called for this partner.',
  'partners[].v3.writeMode':
    'single: one POST per record; batch: V3 $batch; auto: $batch where V3 accepts it.',
  'partners[].v3.batchFormat': 'Format of V3 batches.',
  'partners[].v3.maxBatchRecords': 'Maximum number of records in one V3 batch.',
  'partners[].v3.concurrency': 'Maximum number of concurrent POSTs of one batch in single mode.',
  'partners[].v3.budgetMs': 'Time in milliseconds for all records of one batch.',
  'partners[].v3.callsPerSecond':
    'Calls to V3 per second with one key, or none for no limit; default 5, on a loopback address none.',
  'partners[].v3.refuseOverBudget':
    'true: refuse a new batch (503, Retry-After) that the rate does not let through within budgetMs.',
  'partners[].v3.readBackAfterMs':
    'Pauses in milliseconds before each read-back of a record whose outcome is unknown.',
  'partners[].v3.bodyProfile': 'Members of a V3 record that are sent: full, or minimal.',
  'partners[].v3.attendeeType': 'Type of Attendee in V3 records.',
  'partners[].v3.eventType': 'Type of Event in V3 records.',
  'partners[].v3.codeType': 'Type of AttendanceCode in V3 records.',
  'partners[].v3.subscriptionKey': "Subscription key of the partner for V3 (default: the client's key).",
  'partners[].v3.auth': 'Source of the bearer token for V3.',
  'partners[].v3.auth.mode':
    "passThrough forwards the client's token; clientCredentials fetches tokens for the partner.",
  'partners[].v3.auth.tokenUrl': 'Address of the token endpoint, https.',
  'partners[].v3.auth.clientId': 'Client id for the token endpoint; may be a secret.',
  'partners[].v3.auth.clientSecret': 'Client secret for the token endpoint.',
  'partners[].v3.auth.scope': 'Scope of the token.',
  'partners[].v3.auth.organisation': 'Sent as acr_values=orgselected:<id>.',
  passThrough: 'Requests that are passed through to V3 unchanged; a change needs a restart.',
  'passThrough.allow': 'Path patterns with the default methods of their kind, or { path, methods }.',
  'passThrough.allow[].path': 'Path pattern that begins with a slash.',
  'passThrough.allow[].methods': 'Methods that are passed through.',
  'passThrough.rewriteLinks': 'true: rewrite links to V3 in JSON replies to the address of the adapter.',
}
