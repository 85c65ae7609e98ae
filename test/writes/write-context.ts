import { systemClock } from '../../src/clock.ts'
import { AdapterError } from '../../src/errors.ts'
import { createFailureScope } from '../../src/http/failure-scope.ts'
import { createSlicing } from '../../src/http/slices.ts'
import { createNoJournal } from '../../src/journal/index.ts'
import { createEvents } from '../../src/observability/events.ts'
import { createLogger } from '../../src/observability/logger.ts'
import { createAcceptedCredentials, createTokenVerdicts } from '../../src/partners/credentials.ts'
import { createActiveRecords } from '../../src/writes/active-records.ts'
import { createEchoLearning, type WriteContext } from '../../src/writes/context.ts'
import { createPredecessorWatch } from '../../src/writes/predecessors.ts'

export const refuse = (): never => {
  throw new AdapterError('ADP_TOKEN', 'no token')
}

/** Creates a write context with the given members. By default it has no durable journal, and a call to V3 fails. */
export function createWriteContext(own: Partial<WriteContext> = {}): WriteContext {
  const { journal = createNoJournal(), clock = systemClock } = own
  return {
    v3: { openWrites: refuse, close: () => Promise.resolve() },
    reader: { get: refuse, held: () => 0, close: () => Promise.resolve() },
    upstream: 'http://x/',
    journal,
    predecessors: createPredecessorWatch(journal, clock),
    accepted: createAcceptedCredentials(),
    verdicts: createTokenVerdicts(Date.now),
    orphans: new Map(),
    echoes: createEchoLearning(() => 0),
    onVisible: () => undefined,
    active: createActiveRecords(),
    slicing: createSlicing(),
    failures: createFailureScope(),
    events: createEvents(createLogger('silent')),
    clock,
    nowMs: () => clock.nowMs(),
    newId: () => 'id',
    ...own,
  }
}
