import { type BatchText, batchOf } from '../../support/batch-request.ts'
import { sampleMark, sandboxHeaders, type startSandbox } from '../../sandbox/start-sandbox.ts'

export interface SandboxRegister {
  readonly batch: BatchText
  readonly headers: Record<string, string>
  /** The ids of the learners, sorted. */
  readonly learners: readonly string[]
  /** Returns the learners whose marks reached the sandbox, sorted. A learner whose mark was written twice occurs twice. */
  written(): Promise<string[]>
}

export async function sandboxRegister(
  sandbox: Awaited<ReturnType<typeof startSandbox>>,
  count: number,
): Promise<SandboxRegister> {
  const samples = await sandbox.samples()
  const learners = samples.learners.slice(0, count)
  // The comment distinguishes these marks from the marks that the sandbox already has for the session. A read-back would mistake equal
  // marks for the posted marks.
  const records = learners.map((_, index) => sampleMark(samples, index, { Comment: 'register' }))
  return {
    batch: batchOf(records),
    headers: sandboxHeaders,
    learners: [...learners].sort(),
    written: async () =>
      ((await sandbox.effects()) as { learner: string }[]).map(({ learner }) => learner).sort(),
  }
}
