import { odataError } from '../edge/reply.ts'
import type { Reply } from '../edge/reply.ts'
import type { Operation, OperationResult } from './operation.ts'

/** The environment of a running batch. */
export interface BatchRunner {
  readonly execute: (operation: Operation) => Reply
  /** Runs `work` and undoes everything it wrote unless it returns true; returns what `work` returned. */
  readonly attempt: (work: () => boolean) => boolean
  /** Whether requests after one that failed are run (`Prefer: odata.continue-on-error`). */
  readonly continueOnError: boolean
}

const failed = ({ status }: Reply): boolean => status >= 400
const dependencyFailed = odataError(424, 'FailedDependency', 'A request that this one depends on failed.')

/**
 * Runs the operations in order, each group whole or not at all. Without `continueOnError` the batch ends after the first
 * failure (OData protocol 11.7.7.3). In a failed group the operation that failed has its own answer, the others 424.
 */
export function runOperations(operations: readonly Operation[], runner: BatchRunner): OperationResult[] {
  const results: OperationResult[] = []
  const lost = new Set<string>()
  for (const run of inGroups(operations)) {
    const done = runGroup(run, lost, runner)
    results.push(...done)
    if (!done.some(({ reply }) => failed(reply))) continue
    for (const { operation, reply } of done)
      if (failed(reply) && operation.id !== undefined) lost.add(operation.id)
    const group = run[0]?.group
    if (group !== undefined) lost.add(group)
    if (!runner.continueOnError) break
  }
  return results
}

function runGroup(
  run: readonly Operation[],
  lost: ReadonlySet<string>,
  runner: BatchRunner,
): OperationResult[] {
  const results: OperationResult[] = []
  const one = (operation: Operation): boolean => {
    const blocked = operation.dependsOn.some((id) => lost.has(id))
    const reply = blocked ? dependencyFailed : runner.execute(operation)
    results.push({ operation, reply })
    return !failed(reply)
  }
  if (run[0]?.group === undefined) {
    run.forEach(one)
    return results
  }
  if (runner.attempt(() => run.every(one))) return results
  const culprit = results.at(-1)
  return run.map((operation) =>
    operation === culprit?.operation ? culprit : { operation, reply: dependencyFailed },
  )
}

/** Cuts the operations into runs: each group one run, each other operation a run of its own. */
function inGroups(operations: readonly Operation[]): Operation[][] {
  const runs: Operation[][] = []
  for (const operation of operations) {
    const last = runs.at(-1)
    if (operation.group !== undefined && last?.[0]?.group === operation.group) last.push(operation)
    else runs.push([operation])
  }
  return runs
}
