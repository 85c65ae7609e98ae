import type { LiveEvidenceOptions } from '../../compare/evidence/index.ts'
import type { LiveLearningOptions } from '../../compare/learn/index.ts'
import type { PaceStore } from '../../compare/live/index.ts'
import { AdapterError } from '../../errors.ts'
import type { Caller } from './thread-calls.ts'

/** The journal of the adapter as its thread of comparisons reaches it. */
export interface ThreadStores {
  readonly pace: PaceStore
  readonly evidence: LiveEvidenceOptions['store']
  readonly learned: LiveLearningOptions['store']
}

/** Other instances change the same text now and then. */
const TRIES = 5

/** Creates the stores over calls. */
export function createThreadStores({ call }: Caller): ThreadStores {
  return {
    pace: {
      reserve: (name, limit, calls) => call('reservePace', name, limit, calls),
      pauseFor: (name, ms) => call('pausePace', name, ms),
      sincePauseMs: (name) => call('sincePacePauseMs', name),
    },
    evidence: {
      key: (scope) => call('evidenceKey', scope),
      add: ({ period }, entries) => call('addEvidence', period, entries),
    },
    learned: {
      updateEvidence: async (name, update) => {
        for (let left = TRIES; left > 0; left -= 1) {
          const read = await call('readEvidence', name)
          const text = update(read)
          if (await call('replaceEvidence', name, read, text)) return text
        }
        throw new AdapterError(
          'ADP_JOURNAL_UNAVAILABLE',
          'Other instances change what is learned all the time.',
        )
      },
    },
  }
}
