import { type BatchText, batchOf } from '../../support/batch-request.ts'
import { sampleMark, sandboxHeaders, type startSandbox } from '../../sandbox/start-sandbox.ts'

/** The register of one session of the sandbox's class. */
export interface SandboxRegister {
  readonly batch: BatchText
  /** The sandbox's own credentials. */
  readonly headers: Record<string, string>
  /** Sorted. */
  readonly learners: readonly string[]
  /** The learners whose marks reached the sandbox, sorted; twice where a mark was written twice. */
  written(): Promise<string[]>
}

/** Builds the register of `count` learners of a running sandbox. */
export async function sandboxRegister(
  sandbox: Awaited<ReturnType<typeof startSandbox>>,
  count: number,
): Promise<SandboxRegister> {
  const samples = await sandbox.samples()
  const learners = samples.learners.slice(0, count)
  // The learners have marks of that session already: equal ones would be taken for those that are lost.
  const records = learners.map((_, index) => sampleMark(samples, index, { Comment: 'register' }))
  return {
    batch: batchOf(records),
    headers: sandboxHeaders,
    learners: [...learners].sort(),
    written: async () =>
      ((await sandbox.effects()) as { learner: string }[]).map(({ learner }) => learner).sort(),
  }
}
