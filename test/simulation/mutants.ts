/** A guard of the engine that is broken on purpose. `from` occurs in the module once. */
export interface Mutant {
  readonly name: string
  /** The path below `src/`. */
  readonly module: string
  readonly from: string
  readonly to: string
}

/** The mutants. Each of them breaks a promise, and histories must show it. */
export const mutants: readonly Mutant[] = [
  {
    name: 'posts without asking for the lease',
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
    name: 'takes a read that finds nothing for the last one',
    module: 'writes/resolve-unknown.ts',
    from: 'index >= spacingMs.length - 1 ||',
    to: 'index >= 0 ||',
  },
  {
    name: 'takes whatever was sent before for what can no longer arrive',
    module: 'writes/run.ts',
    from: 'const isPast = !readAll && canNoLongerArrive(unknown?.get(position))',
    to: 'const isPast = true',
  },
  {
    name: 'posts what a batch is still applying',
    module: 'translate/read-back.ts',
    from: "{ executing: [true], then: 'unclear' },",
    to: '',
  },
  {
    name: 'takes a batch for over when one record would be',
    module: 'writes/execution.ts',
    from: 'arrivalMs(partner, missing())',
    to: 'arrivalMs(partner, 0 * missing())',
  },
  {
    name: 'forgets what was sent in a batch when its process ends',
    module: 'writes/write-session.ts',
    from: 'sentBefore.atOnce > 1',
    to: 'sentBefore.atOnce < 1',
  },
  {
    name: 'ends a record whose batch is not over',
    module: 'writes/resolve-unknown.ts',
    from: 'if (execution === undefined) return unknown',
    to: 'if (execution !== null) return unknown',
  },
  {
    name: 'does not know the mark of an older lost record',
    module: 'writes/resolve-unknown.ts',
    from: 'lost.length === 0 ? seen',
    to: 'true ? seen',
  },
  {
    name: 'makes all reads again at each retry',
    module: 'writes/settlement-policy.ts',
    from: 'reason !== undefined && readBackInVain.has(reason)',
    to: 'false',
  },
  {
    name: 'answers for ever that a superseded record is unknown',
    module: 'writes/reply.ts',
    from: "if (superseded && state === 'unknown' && stored?.status !== SUPERSEDED_STATUS)",
    to: "if (false && state === 'unknown' && stored?.status !== SUPERSEDED_STATUS)",
  },
  {
    name: 'reads back whichever mark stands',
    module: 'translate/read-back.ts',
    from: "{ content: ['same'], then: 'applied' },",
    to: "{ content: ['same', 'alike', 'other'], then: 'applied' },",
  },
  {
    name: 'posts over a mark whose place is unclear',
    module: 'translate/read-back.ts',
    from: "  { then: 'unclear' },\n]",
    to: "  { then: 'absent' },\n]",
  },
  {
    name: 'knows no newer record of the key',
    module: 'translate/read-back.ts',
    from: "{ newer: ['confirmed'], then: 'superseded' },",
    to: '',
  },
  {
    name: 'sends a record before older ones of its key have ended',
    module: 'writes/run.ts',
    from: 'isPast, after: ready })',
    to: 'isPast, after: undefined })',
  },
  {
    name: 'takes an older record for ended once the nearest has',
    module: 'writes/predecessors.ts',
    from: 'if (next === undefined) return true',
    to: 'return true',
  },
  {
    name: 'opens a record again although a newer one of its key stands',
    module: 'journal/core/settle.ts',
    from: 'return newest === undefined || !isNewer(newest, { batch, position })',
    to: 'return true',
  },
  {
    name: 'knows a batch by its ids alone',
    module: 'journal/core/begin.ts',
    from: 'const same = recent.filter((one) => one.content === content)',
    to: 'const same = recent',
  },
  {
    name: 'forgets whose the credentials are',
    module: 'partners/credentials.ts',
    from: '(owners.get(owner) ?? []).map(({ credentials }) => credentials)',
    to: '[...owners.keys()].flatMap((one) => owners.get(one) ?? []).filter((one) => one.hash !== owner).map(({ credentials }) => credentials)',
  },
  {
    name: 'says 503 of a record that it has sent',
    module: 'v3/outcome.ts',
    from: "return { kind: 'unknown', reason: 'serverError' }",
    to: "return { kind: 'notApplied', reason: 'unavailable', retryAfterMs: undefined }",
  },
  {
    name: 'takes a cut reply for none that was sent',
    module: 'v3/client/post.ts',
    from: 'if (!sent) return notApplied(unsentReasonOf(failure))',
    to: 'if (!sent || failure !== undefined) return notApplied(unsentReasonOf(failure))',
  },
  {
    name: 'settles under a lease that others have',
    module: 'journal/core/settle.ts',
    from: 'const isOwn = row.instance === instance && (lease === undefined || lease === instance)',
    to: 'const isOwn = true',
  },
  {
    name: 'loses the wake-up of calls that wait for a connection',
    module: 'upstream/connections.ts',
    from: 'quota.release(holder)\n    serveNext()',
    to: 'quota.release(holder)',
  },
  {
    name: 'takes a doubtful commit for none',
    module: 'journal/group-commit.ts',
    from: "for (const entry of entries) entry.doubtful ||= storeError.kind === 'doubtful'",
    to: '',
  },
  {
    name: 'never takes over the batches of the dead',
    module: 'writes/recovery.ts',
    from: 'const taken = await journal.takeOver()',
    to: 'const taken: Awaited<ReturnType<typeof journal.takeOver>> = []',
  },
  {
    name: 'judges what V2 was sent by its newest request alone',
    module: 'writes/relayed-reply.ts',
    from: 'for (const number of [batch, ...earlier]) {',
    to: 'for (const number of [batch]) {',
  },
  {
    name: 'gives no reply of V2 again',
    module: 'writes/relayed-reply.ts',
    from: 'if (found?.isFinal !== true) continue',
    to: 'continue',
  },
  {
    name: 'sends V2 a batch before older writes of its keys to V3 have ended',
    module: 'writes/relayed-write.ts',
    from: 'if (own.length === 0) return true',
    to: 'return true',
  },
  {
    name: 'sends V2 a write whose lease is lost',
    module: 'proxy/handle-legacy.ts',
    from: 'expectHeld?.()',
    to: 'void expectHeld',
  },
  {
    name: 'sends V2 what V3 has served',
    module: 'journal/core/begin.ts',
    from: 'side === undefined || one.onV2 === 0 || one.batch > resendOf',
    to: 'side === undefined || one.batch > resendOf',
  },
  {
    name: 'goes forward while writes are under way on the other side',
    module: 'rollout/store/changes.ts',
    from: "if (instances.length > 0) return { kind: 'undrained' as const, instances }",
    to: '',
  },
  {
    name: 'takes what was read back for what replies show',
    module: 'translate/echo-profile.ts',
    from: 'const known = profile.commentsShown || proven ? profile',
    to: 'const known = profile.commentsShown ? profile',
  },
  {
    name: 'compares the commits of its present number alone',
    module: 'journal/high-water.ts',
    from: 'if (last !== undefined && slotOf(last) !== slotOf(instance)) {',
    to: 'if (last === -1) {',
  },
  {
    name: 'counts the commits of all instances in one sum',
    module: 'journal/high-water.ts',
    from: 'export const slotOf = (instance: number): number => instance % SLOTS',
    to: 'export const slotOf = (instance: number): number => instance * 0 * SLOTS',
  },
  {
    name: 'trusts whatever the store has become',
    module: 'journal/high-water.ts',
    from: 'if (why === undefined) return',
    to: 'if (why !== null) return',
  },
  {
    name: 'takes others for dead by its wall clock',
    module: 'journal/take-over.ts',
    from: 'else if (nowMs - sinceMs >= leaseMs * LEASES_MISSED) gone.lost.push(one)',
    to: 'else if (clock.wallMs() >= leaseUntil + leaseMs * (LEASES_MISSED - 1) + sinceMs * 0) gone.lost.push(one)',
  },
  {
    name: 'knows its own mark by the time alone',
    module: 'translate/read-back.ts',
    from: "{ content: ['same'], then: 'applied' },",
    to: "{ content: ['same'], time: ['exact'], then: 'applied' },",
  },
  {
    name: 'calls the mark of an older record one of others',
    module: 'translate/read-back.ts',
    from: "{ identity: ['confirmed', 'perhaps', 'lost'], then: 'absent' },",
    to: "{ identity: ['confirmed', 'perhaps', 'lost'], then: 'overwritten' },",
  },
  {
    name: 'compares a mark with what was sent, not with what the service makes of that',
    module: 'translate/read-back.ts',
    from: "  if (profile.commentsOpaque) return 'alike'\n",
    to: "  if (before !== '') return 'other'\n",
  },
]
