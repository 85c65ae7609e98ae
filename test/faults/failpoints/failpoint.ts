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

export function formatFailpoint({ kind, nth, store, signal }: Failpoint): string {
  return `${kind}:${nth}:${store}${signal === undefined ? '' : `:${signal}`}`
}

/** The inverse of `formatFailpoint`. */
export function parseFailpoint(text: string): Failpoint {
  const [name, nth, store, signal] = text.split(':')
  const kind = failpointKinds.find((known) => known === name)
  if (kind === undefined || (store !== 'sqlite' && store !== 'postgres')) {
    throw new Error(`no failpoint: ${text}`)
  }
  const failpoint = { kind, nth: Number(nth), store } as const
  if (signal === undefined) return failpoint
  if (signal !== 'SIGKILL' && signal !== 'SIGSTOP') throw new Error(`no failpoint: ${text}`)
  return { ...failpoint, signal }
}
