/**
 * Decides who comes first: the store that commits a group, or a caller that gives up. Only so a caller can be told for certain that
 * nothing was kept. Threads share it.
 */
export type CommitGate = Int32Array<SharedArrayBuffer>

const [OPEN, CLOSED, PASSED] = [0, 1, 2]

/** Creates the gate of one attempt to commit. */
export const createCommitGate = (): CommitGate => new Int32Array(new SharedArrayBuffer(4))

/** The store calls this right before it commits. False: the gate is closed, and the group must be rolled back. */
export const passGate = (gate: CommitGate): boolean =>
  Atomics.compareExchange(gate, 0, OPEN, PASSED) !== CLOSED

/** True: the group will not be committed. False: it may be, or is. */
export const closeGate = (gate: CommitGate): boolean =>
  Atomics.compareExchange(gate, 0, OPEN, CLOSED) !== PASSED

/** True once the store has begun to commit. */
export const hasPassed = (gate: CommitGate): boolean => Atomics.load(gate, 0) === PASSED
