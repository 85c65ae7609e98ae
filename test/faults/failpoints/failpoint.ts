/**
 * The moments at which a process can kill itself: before and after the commit of a journal transaction, before and after a request to V3
 * leaves, and when the head of the answer or the whole answer has arrived.
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

/** Kills the process, or stops it with SIGSTOP, when the moment comes for the `nth` time, counted from 1. */
export interface Failpoint {
  readonly kind: FailpointKind
  readonly nth: number
  /** The store whose commits are counted. */
  readonly store: 'sqlite' | 'postgres'
  /** The signal that the process sends to itself. Default: SIGKILL. */
  readonly signal?: 'SIGKILL' | 'SIGSTOP'
}

/** The environment variable that `preload.ts` reads. */
export const failpointVariable = 'MARKBRIDGE_TEST_FAILPOINT'

/** Returns the value of `failpointVariable`, which is empty for a process without a failpoint. */
export function formatFailpoint(failpoint: Failpoint | undefined): string {
  return failpoint === undefined ? '' : JSON.stringify(failpoint)
}
