/**
 * The moments at which a process can kill itself: before and after the commit of a journal transaction, before and after a request to V3
 * leaves, and when the head of the reply or the whole reply has arrived.
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

/** The moment at which a process kills itself, or stops itself with SIGSTOP: the `nth` occurrence of `kind`, counted from 1. */
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
