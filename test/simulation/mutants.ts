/** A deliberate defect of the engine: `to` replaces `from`, which occurs in the module once. */
export interface Mutant {
  readonly name: string
  /** The path below `src/`. */
  readonly module: string
  readonly from: string
  readonly to: string
}

/** The mutants, named after the fault of the engine. Each mutant breaks a promise, and histories must detect it. */
export const mutants: readonly Mutant[] = [
  {
    name: 'posts without checking the lease',
    module: 'writes/run.ts',
    from: 'maySend: () => journal.lease() === lease && !settler.hasFailed()',
    to: 'maySend: () => true',
  },
  {
    name: 'reports an outcome before it is durable',
    module: 'writes/run.ts',
    from: 'await journal.settle(batch, outcomes, lease)',
    to: 'void journal.settle(batch, outcomes, lease).catch(() => undefined)',
  },
  {
    name: 'retries an unknown outcome without a read-back',
    module: 'writes/write-session.ts',
    from: "return resolveUnknown(task, again, lost.reason, { how: 'now', fromMs, execution })",
    to: 'return again()',
  },
  {
    name: 'treats the first read-back that finds nothing as the last',
    module: 'writes/resolve-unknown.ts',
    from: 'index >= spacingMs.length - 1 ||',
    to: 'index >= 0 ||',
  },
  {
    name: 'assumes that no request of an earlier run can still arrive',
    module: 'writes/run.ts',
    from: 'const isPast = !readAll && canNoLongerArrive(unknown?.get(position))',
    to: 'const isPast = true',
  },
  {
    name: 'posts records of a $batch that V3 may still be executing',
    module: 'translate/read-back.ts',
    from: "{ executing: [true], then: 'unclear' },",
    to: '',
  },
  {
    name: 'assumes that a $batch takes no longer than one record',
    module: 'writes/execution.ts',
    from: 'arrivalMs(partner, missing())',
    to: 'arrivalMs(partner, 0 * missing())',
  },
  {
    name: 'forgets after a restart that records were sent in a $batch',
    module: 'writes/write-session.ts',
    from: 'sentBefore.atOnce > 1',
    to: 'sentBefore.atOnce < 1',
  },
  {
    name: 'settles a record whose $batch V3 may still be executing',
    module: 'writes/resolve-unknown.ts',
    from: 'if (execution === undefined) return unknown',
    to: 'if (execution !== null) return unknown',
  },
  {
    name: 'does not recognise the mark of an older record with a lost reply',
    module: 'writes/resolve-unknown.ts',
    from: 'lost.length === 0 ? finding',
    to: 'true ? finding',
  },
  {
    name: 'repeats all read-backs of a record at each retry',
    module: 'writes/settlement-policy.ts',
    from: 'reason !== undefined && readBackInVain.has(reason)',
    to: 'false',
  },
  {
    name: 'reports a superseded record as unknown for ever',
    module: 'writes/reply.ts',
    from: "if (superseded && state === 'unknown' && stored?.status !== SUPERSEDED_STATUS)",
    to: "if (false && state === 'unknown' && stored?.status !== SUPERSEDED_STATUS)",
  },
  {
    name: 'takes any mark for the posted mark',
    module: 'translate/read-back.ts',
    from: "{ content: ['same'], then: 'applied' },",
    to: "{ content: ['same', 'alike', 'other'], then: 'applied' },",
  },
  {
    name: 'posts again when a read-back is unclear',
    module: 'translate/read-back.ts',
    from: "  { then: 'unclear' },\n]",
    to: "  { then: 'absent' },\n]",
  },
  {
    name: 'ignores a newer confirmed record of the key',
    module: 'translate/read-back.ts',
    from: "{ newer: ['confirmed'], then: 'superseded' },",
    to: '',
  },
  {
    name: 'posts a record before older records of its key are settled',
    module: 'writes/run.ts',
    from: 'isPast, after: wait })',
    to: 'isPast, after: undefined })',
  },
  {
    name: 'waits only for the nearest older record of the key',
    module: 'writes/predecessors.ts',
    from: 'if (next === undefined) return true',
    to: 'return true',
  },
  {
    name: 'reopens a record although a newer record of its key stands',
    module: 'journal/core/settle.ts',
    from: 'return newest === undefined || !isNewer(newest, { batch, position })',
    to: 'return true',
  },
  {
    name: 'recognises a repeated batch by its ids alone',
    module: 'journal/core/begin.ts',
    from: 'const same = recent.filter((one) => one.content === content)',
    to: 'const same = recent',
  },
  {
    name: 'finishes a batch with the credentials of another owner',
    module: 'partners/credentials.ts',
    from: '(owners.get(owner) ?? []).map(({ credentials }) => credentials)',
    to: '[...owners.keys()].flatMap((one) => owners.get(one) ?? []).filter((one) => one.hash !== owner).map(({ credentials }) => credentials)',
  },
  {
    name: 'reports a record as not applied after a server error',
    module: 'v3/outcome.ts',
    from: "return { kind: 'unknown', reason: 'serverError' }",
    to: "return { kind: 'notApplied', reason: 'unavailable', retryAfterMs: undefined }",
  },
  {
    name: 'reports a record as not sent when its reply is lost',
    module: 'v3/client/post.ts',
    from: 'if (!sent) return notApplied(unsentReasonOf(failure))',
    to: 'if (!sent || failure !== undefined) return notApplied(unsentReasonOf(failure))',
  },
  {
    name: 'settles records under the lease of another instance',
    module: 'journal/core/settle.ts',
    from: 'const isOwn = row.instance === instance && (lease === undefined || lease === instance)',
    to: 'const isOwn = true',
  },
  {
    name: 'does not wake calls that wait for a connection',
    module: 'upstream/connections.ts',
    from: 'quota.release(holder)\n    serveNext()',
    to: 'quota.release(holder)',
  },
  {
    name: 'treats a doubtful commit as rolled back',
    module: 'journal/group-commit.ts',
    from: "for (const entry of entries) entry.doubtful ||= storeError.kind === 'doubtful'",
    to: '',
  },
  {
    name: 'never takes over the batches of dead instances',
    module: 'writes/recovery.ts',
    from: 'const taken = await journal.takeOver()',
    to: 'const taken: Awaited<ReturnType<typeof journal.takeOver>> = []',
  },
  {
    name: 'looks for a reply of V2 only in the newest request',
    module: 'writes/relayed-reply.ts',
    from: 'for (const number of [batch, ...earlier]) {',
    to: 'for (const number of [batch]) {',
  },
  {
    name: 'never replays a reply of V2',
    module: 'writes/relayed-reply.ts',
    from: 'if (found?.isFinal !== true) continue',
    to: 'continue',
  },
  {
    name: 'sends a batch to V2 before older records on V3 are settled',
    module: 'writes/relayed-write.ts',
    from: 'if (own.length === 0) return true',
    to: 'return true',
  },
  {
    name: 'sends a write to V2 after its lease is lost',
    module: 'proxy/handle-legacy.ts',
    from: 'expectLease?.()',
    to: 'void expectLease',
  },
  {
    name: 'sends a batch to V2 that V3 has served',
    module: 'journal/core/begin.ts',
    from: 'side === undefined || one.onV2 === 0 || one.batch > resendOf',
    to: 'side === undefined || one.batch > resendOf',
  },
  {
    name: 'takes a step forward before the instances have drained',
    module: 'rollout/store/changes.ts',
    from: "if (instances.length > 0) return { kind: 'undrained' as const, instances }",
    to: '',
  },
  {
    name: 'learns from read-backs which values replies show',
    module: 'translate/echo-profile.ts',
    from: 'const known = profile.commentsShown || proven ? profile',
    to: 'const known = profile.commentsShown ? profile',
  },
  {
    name: 'compares only the commits of its current instance number',
    module: 'journal/high-water.ts',
    from: 'if (last !== undefined && slotOf(last) !== slotOf(instance)) {',
    to: 'if (last === -1) {',
  },
  {
    name: 'counts the commits of all instances in one slot',
    module: 'journal/high-water.ts',
    from: 'export const slotOf = (instance: number): number => instance % SLOTS',
    to: 'export const slotOf = (instance: number): number => instance * 0 * SLOTS',
  },
  {
    name: 'trusts a damaged journal',
    module: 'journal/high-water.ts',
    from: 'if (why === undefined) return',
    to: 'if (why !== null) return',
  },
  {
    name: 'declares other instances dead by its wall clock',
    module: 'journal/take-over.ts',
    from: 'else if (nowMs - sinceMs >= leaseMs * LEASES_MISSED) gone.lost.push(one)',
    to: 'else if (clock.wallMs() >= leaseUntil + leaseMs * (LEASES_MISSED - 1) + sinceMs * 0) gone.lost.push(one)',
  },
  {
    name: 'recognises its own mark only by the exact time',
    module: 'translate/read-back.ts',
    from: "{ content: ['same'], then: 'applied' },",
    to: "{ content: ['same'], time: ['exact'], then: 'applied' },",
  },
  {
    name: "takes the mark of an older record for another program's",
    module: 'translate/read-back.ts',
    from: "{ identity: ['confirmed', 'perhaps', 'lost'], then: 'absent' },",
    to: "{ identity: ['confirmed', 'perhaps', 'lost'], then: 'overwritten' },",
  },
  {
    name: 'ignores that the service is known to change comments',
    module: 'translate/read-back.ts',
    from: "  if (profile.commentsOpaque) return 'alike'\n",
    to: "  if (before !== '') return 'other'\n",
  },
]
