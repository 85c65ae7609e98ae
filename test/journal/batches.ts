import { hash } from 'node:crypto'

import type { BeginResult, Journal, NewBatch, Settled, StoredBatch } from '../../src/journal/index.ts'

export const START_MS = Date.UTC(2026, 8, 1)

const digest = (text: string): Uint8Array => hash('sha256', text, 'buffer')

/** Returns a batch with one record per key. A second batch with the same `name` and keys is a resend of the first. */
export function batchOf(
  keys: readonly string[],
  given: Partial<NewBatch> & { name?: string } = {},
): NewBatch {
  const { name, ...members } = given
  return {
    partner: 'acme',
    owner: 'the client',
    ids: name === undefined ? undefined : digest(`ids of ${name}`),
    content: digest(keys.join()),
    receivedMs: START_MS,
    payload: Buffer.from(`payload of ${keys.join()}`),
    credentials: undefined,
    records: keys.map((key) => ({ key })),
    ...members,
  }
}

export async function beginNew(journal: Journal, batch: NewBatch): Promise<number> {
  const begun = await journal.begin(batch)
  if (begun.kind !== 'new') throw new Error('the batch is known')
  return begun.batch
}

/** Returns the predecessors (`after`) of a new batch as an object, which is easier to compare. */
export function afterOf(begun: BeginResult): unknown {
  return begun.kind === 'new' ? Object.fromEntries(begun.after) : begun
}

export const confirmed = (position: number, answer = `answer ${position}`): Settled => ({
  position,
  state: 'confirmed',
  answer,
})

export async function statesOf(journal: Journal, batch: number): Promise<readonly string[]> {
  const stored = await journal.load(batch)
  return stored?.records.map(({ state, superseded }) => (superseded ? `${state}, superseded` : state)) ?? []
}

/** Returns the request of a batch as text, or an empty string if the request is not stored. */
export const textOf = (stored: StoredBatch | undefined): string =>
  Buffer.from(stored?.payload ?? []).toString()
