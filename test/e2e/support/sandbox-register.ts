import { type BatchText, batchOf } from '../../support/batch-request.ts'
import { sandboxHeaders, type startSandbox } from '../../sandbox/start-sandbox.ts'

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
  const { body } = await sandbox.json('GET', '/_sandbox/samples')
  const samples = body as { learners: string[]; events: string[]; codes: { id: string }[] }
  const learners = samples.learners.slice(0, count)
  const records = learners.map((Learner) => ({
    Present: true,
    Absent: false,
    Learner,
    AttendableEvent: samples.events[0],
    SchoolAttendanceCode: samples.codes[0]?.id,
    MinutesLate: null,
    // The learners have marks of that session already: equal ones would be taken for those that are lost.
    Comment: 'register',
  }))
  return {
    batch: batchOf(records),
    headers: sandboxHeaders,
    learners: [...learners].sort(),
    written: async () => {
      const effects = await sandbox.json('GET', '/_sandbox/effects')
      return (effects.body as { learner: string }[]).map(({ learner }) => learner).sort()
    },
  }
}
