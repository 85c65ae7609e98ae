/** A guard of the engine that is broken on purpose: `from` stands in the module once. */
export interface Mutant {
  readonly name: string
  /** Path below `src/`. */
  readonly module: string
  readonly from: string
  readonly to: string
}

/** Each of them breaks a promise, and histories must show it. */
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
    from: "if (lost !== undefined) return readBack(task, again, lost, { how: 'now', fromMs })",
    to: 'if (lost !== undefined) return again()',
  },
  {
    name: 'takes a read that finds nothing for the last one',
    module: 'writes/resolve-unknown.ts',
    from: 'const isSure = index === spacingMs.length - 1',
    to: 'const isSure = index === 0',
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
    module: 'writes/write-session.ts',
    from: 'if (after !== undefined && !(await after)) {',
    to: 'if (after !== undefined && !(await after) && false) {',
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
]
