/**
 * The moments at which a process may kill itself: before and after a transaction of the journal is committed, before a request
 * to V3 leaves, after it left, when the head of its answer came, and when all of the answer came.
 */
export const failpointKinds = [
  'beforeCommit',
  'afterCommit',
  'beforeSend',
  'afterSend',
  'answerHead',
  'answerEnd',
] as const

export type FailpointKind = (typeof failpointKinds)[number]

/** Dies, or stops with SIGSTOP, when the moment comes for the `nth` time, counted from 1. */
export interface Failpoint {
  readonly kind: FailpointKind
  readonly nth: number
  /** Whose commits are meant. */
  readonly store: 'sqlite' | 'postgres'
  /** What the process does to itself. Default: SIGKILL. */
  readonly signal?: 'SIGKILL' | 'SIGSTOP'
}

/** The variable that `preload.ts` reads. */
export const failpointVariable = 'MARKBRIDGE_TEST_FAILPOINT'

/** The value of that variable; empty for a process that lives on. */
export function formatFailpoint(failpoint: Failpoint | undefined): string {
  return failpoint === undefined ? '' : JSON.stringify(failpoint)
}
