import { type Kysely, sql } from 'kysely'

import { AdapterError } from '../errors.ts'
import { bytesOf } from './core/begin.ts'
import type { NewBatch } from './journal.ts'
import type { JournalTables } from './schema.ts'

/** The most that is kept of requests, in bytes before they are compressed. */
export interface KeptLimits {
  /** For one owner that V3 or V2 has accepted. */
  readonly ownerBytes: number
  /** For all other owners together. */
  readonly newcomerBytes: number
}

export const keptLimits: KeptLimits = { ownerBytes: 64 * 1024 ** 3, newcomerBytes: 256 * 1024 ** 2 }

/** What is kept of requests, by owner: what the tables had when they were read last, with what this process has changed since. */
interface KeptBytes {
  /** False: too much is kept for the owner to keep this batch too. */
  hasRoom(batch: NewBatch): boolean
  begun(batch: number, request: NewBatch): void
  /** A record of the batch was confirmed. */
  accepted(batch: number): void
  forgotten(batch: number): void
  refresh(): Promise<void>
}

/** Creates the counts of one process, which are to be refreshed once before they are used. */
export function createKeptBytes(
  db: Kysely<JournalTables>,
  { ownerBytes, newcomerBytes }: KeptLimits,
): KeptBytes {
  const accepted = new Map<string, number>()
  /** Owners that were never accepted. */
  const others = new Map<string, number>()
  let ofOthers = 0
  /** Batches of such owners. */
  const batches = new Map<number, { readonly owner: string; readonly bytes: number }>()
  const accept = (owner: string): void => {
    const bytes = others.get(owner) ?? 0
    if (others.delete(owner)) ofOthers -= bytes
    if (bytes > 0 || !accepted.has(owner)) accepted.set(owner, (accepted.get(owner) ?? 0) + bytes)
  }
  const add = (owner: string, bytes: number): void => {
    const known = accepted.get(owner)
    if (known !== undefined) {
      accepted.set(owner, known + bytes)
      return
    }
    others.set(owner, (others.get(owner) ?? 0) + bytes)
    ofOthers += bytes
  }
  return {
    hasRoom: (batch) => {
      const { owner, newcomer = false } = batch
      if (!newcomer) accept(owner)
      const bytes = bytesOf(batch)
      const kept = accepted.get(owner)
      return kept === undefined ? ofOthers + bytes <= newcomerBytes : kept + bytes <= ownerBytes
    },
    begun: (batch, request) => {
      const { owner } = request
      const bytes = bytesOf(request)
      add(owner, bytes)
      batches.set(batch, { owner, bytes })
    },
    accepted: (batch) => {
      const known = batches.get(batch)
      batches.delete(batch)
      if (known !== undefined) accept(known.owner)
    },
    forgotten: (batch) => {
      const known = batches.get(batch)
      batches.delete(batch)
      if (known !== undefined) add(known.owner, -known.bytes)
    },
    refresh: async () => {
      const { rows } = await sql<{ owner: string; newcomer: number; bytes: number | string }>`
        select owner, newcomer, sum(bytes) as bytes from journal_batches
        where bytes > 0 group by owner, newcomer`.execute(db)
      const known = [...accepted.keys()]
      for (const one of [accepted, others, batches]) one.clear()
      ofOthers = 0
      for (const owner of known) accepted.set(owner, 0)
      for (const { owner, newcomer } of rows) if (newcomer === 0) accepted.set(owner, 0)
      for (const { owner, bytes } of rows) add(owner, Number(bytes))
    },
  }
}

export const tooMuchKept = (): AdapterError =>
  new AdapterError(
    'ADP_OVERLOADED',
    'The journal keeps as many requests of this client as it may, or of all clients whose credentials were never accepted. Nothing was sent.',
  )
