/**
 * What each key of the configuration means, for editors: `partners[].v3.budgetMs` names a key of every entry of a list. One
 * sentence each; defaults and allowed values are in the schema.
 */
export const optionDocs: Readonly<Record<string, string>> = {
  listen: 'Where the adapter listens, and how it stops.',
  'listen.host':
    'Address to listen on; loopback or an address of an inner network, since TLS ends before the adapter.',
  'listen.port': 'TCP port; 0 takes any free one.',
  'listen.trustedProxies':
    'Addresses or ranges (10.0.0.0/8) of proxies whose X-Forwarded-Proto and X-Forwarded-For are believed.',
  'listen.linkSecret': 'Signs next links in place of a secret of the journal; 32 characters or more.',
  'listen.metrics':
    'Who may read /metrics: callers on this machine (loopback), or any who reach the address.',
  'listen.drainMs': 'At a stop, the time in milliseconds that clients have to read their replies.',
  upstreams: 'The services behind the adapter.',
  'upstreams.v3': 'The V3 service.',
  'upstreams.v3.baseUrl': 'Address of V3, http or https, without user, query or fragment.',
  'upstreams.v3.connections': 'Connections to V3 at the most.',
  'upstreams.v3.timeouts': 'Times in milliseconds after which a call to V3 is given up.',
  'upstreams.v3.timeouts.connectMs': 'Time to open a connection.',
  'upstreams.v3.timeouts.acquireMs': 'Longest wait for a free connection.',
  'upstreams.v3.timeouts.headersMs': 'Time from the end of a request to the head of its reply.',
  'upstreams.v3.timeouts.bodyMs': 'Time between two pieces of a reply.',
  limits: 'What one request, and all together, may cost.',
  'limits.maxBodyBytes': 'Bytes of a request body after decompression; a larger one is answered 413.',
  'limits.maxParts': 'Records, and likewise changesets, of one batch; more are answered 413.',
  'limits.maxPartHeaderBytes': 'Bytes of the headers of one part; more are answered 400.',
  'limits.maxPartBytes': 'Bytes of one record; the part of a larger one is answered 400.',
  'limits.maxInFlightBytes': 'Bytes of request bodies and replies in memory, divided between clients.',
  'limits.slowClients': 'Clients that are slower than this are cut off.',
  'limits.slowClients.minBytesPerSecond': 'The slowest rate at which a client may send or read.',
  'limits.slowClients.headersMs': 'Time in milliseconds for the head of a request.',
  'limits.slowClients.uploadMs': 'Milliseconds before the rate of an upload is judged.',
  'limits.slowClients.replyMs': 'Milliseconds before the rate of reading a reply is judged.',
  journal: 'The durable memory of writes.',
  'journal.url':
    'sqlite:<file> for one machine, postgres://… for several, none to keep nothing; may be a secret.',
  'journal.keys': 'Keys that encrypt the journal: the first encrypts, each decrypts.',
  'journal.keys[].id': 'Name of the key, kept beside what it encrypted.',
  'journal.keys[].key': '32 bytes: 64 hexadecimal digits, or base64.',
  'journal.replayForMs': 'How long in milliseconds a repeated batch is answered from the journal.',
  'journal.keepPayloadsMs': 'How long in milliseconds requests and answers are kept.',
  'journal.keepRecordsMs': 'How long in milliseconds the outcome of each record is kept.',
  'journal.plaintext':
    'With keys: refuse what is not encrypted, or accept it while rows from before the first key are kept.',
  'journal.markFile': 'PostgreSQL only: a file that remembers how far the journal had come.',
  'journal.leaseMs':
    'How long in milliseconds an instance may post without the journal; others take over after 1.2 times that.',
  partners: 'Who is served; the first whose match fits a request serves it.',
  'partners[].id': 'Name of the partner in logs, metrics and the journal; used once.',
  'partners[].match':
    'How a request is known to be of this partner: any, subscriptionKeySha256, header or pathPrefix.',
  'partners[].match.any': 'Every request matches.',
  'partners[].match.subscriptionKeySha256':
    "SHA-256 of the subscription key in hexadecimal, or a list of the hashes of one client's keys.",
  'partners[].match.header': 'A header that the client sends.',
  'partners[].match.header.name': 'Name of the header, in any case.',
  'partners[].match.header.value': 'Its value, or a secret with it; never printed.',
  'partners[].match.pathPrefix': 'Beginning of the path: whole segments, decoded, in any case.',
  'partners[].clients':
    'open: a partner known by any or pathPrefix may use a key or tokens of its own, so every caller of the address writes with them.',
  'partners[].identity': 'What separates the clients of one partner.',
  'partners[].identity.claims':
    "Claims of a JWT bearer token that separate one client's batches from another's.",
  'partners[].stage': 'Where the partner is on its way from V2 to V3.',
  'partners[].layout':
    'Layout of batch replies: flat (the legacy contract), nested (generic OData clients), or auto (by the request).',
  'partners[].serviceHosts':
    'Host names that absolute URLs inside a batch may have, without scheme and port; left out: any.',
  'partners[].quirks': 'What a client needs beyond the documented interface.',
  'partners[].quirks.dataEnvelope': 'Records in {"d":…}, pages in {"d":{"results":[…]}}.',
  'partners[].quirks.msgtypeResponse': 'Parts of a batch reply are application/http; msgtype=response.',
  'partners[].quirks.mismatch': 'Post or drop the records when the ids of header and body differ.',
  'partners[].unmappedFields':
    'Fields that the V2 write form does not have: strict refuses the record, pass hands on what V3 has a place for, report leaves out and counts.',
  'partners[].changeProcessName': 'ChangeProcessName of the marks in V3; null sends none.',
  'partners[].reads': 'How V2 reads are translated.',
  'partners[].reads.wideRange': 'A range over 90 days: split into windows, or refuse as V2 did.',
  'partners[].reads.needsRecordedBy': 'A V3 row is a recorded mark only when it names who recorded it.',
  'partners[].reads.unmarkedCodes':
    'Attendance codes that mean "no mark": letters such as -, whose ids the code lookup of V3 has, or ids.',
  'partners[].reads.filterUpstream':
    'Let V3 leave out rows without a recorded mark; false reads them and leaves them out here.',
  'partners[].reads.histories':
    'Fill AttendanceHistorys from StatutoryAttendanceRecordHistorys: one more call for every 40 marks.',
  'partners[].v3': 'How V3 is called for this partner.',
  'partners[].v3.writeMode':
    'single: a POST for each record; batch: V3 $batch; auto: $batch where V3 has it.',
  'partners[].v3.batchFormat': 'Format of V3 batches.',
  'partners[].v3.maxBatchRecords': 'Records in one V3 batch at the most.',
  'partners[].v3.concurrency': 'Records of one batch under way at the same time, in single mode.',
  'partners[].v3.budgetMs': 'Time in milliseconds for all records of one batch.',
  'partners[].v3.callsPerSecond':
    'Calls to V3 with one key per second, or none; default 5, and none for an upstream on a loopback address.',
  'partners[].v3.refuseOverBudget':
    'Refuse a new batch (503, Retry-After) that cannot be posted within budgetMs at that rate.',
  'partners[].v3.readBackAfterMs':
    'Pauses in milliseconds before each read-back of a record whose outcome is unknown.',
  'partners[].v3.bodyProfile': 'Members of a V3 record that are sent: full, or minimal.',
  'partners[].v3.attendeeType': 'Type of Attendee in V3 records.',
  'partners[].v3.eventType': 'Type of Event in V3 records.',
  'partners[].v3.codeType': 'Type of AttendanceCode in V3 records.',
  'partners[].v3.subscriptionKey': "Key of the partner for V3; without it the client's own key is sent on.",
  'partners[].v3.auth': 'Where the bearer token for V3 comes from.',
  'partners[].v3.auth.mode':
    "passThrough sends the client's token on; clientCredentials fetches tokens of the adapter's own.",
  'partners[].v3.auth.tokenUrl': 'Address of the token endpoint, https.',
  'partners[].v3.auth.clientId': 'Client id for the token endpoint, or a secret with it.',
  'partners[].v3.auth.clientSecret': 'Client secret for the token endpoint.',
  'partners[].v3.auth.scope': 'Scope to ask for.',
  'partners[].v3.auth.organisation': 'Sent as acr_values=orgselected:<id>.',
  passThrough: 'Requests that are passed on unchanged.',
  'passThrough.allow':
    'Patterns of paths, each with the methods of its kind, or { path, methods } with its own.',
  'passThrough.allow[].path': 'Pattern of a path, beginning with a slash.',
  'passThrough.allow[].methods': 'The methods that are passed on for it.',
  'passThrough.rewriteLinks': 'Make links of V3 in JSON replies point to the adapter.',
}
