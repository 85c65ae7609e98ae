import { type Kysely, sql } from 'kysely'

import { AdapterError } from '../errors.ts'
import { bytesOf } from './core/rows.ts'
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

/** Neither database keeps as much in one row: one that says so was changed on the disk, and would keep all others out. */
const MOST_BYTES = 1024 ** 3

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

/** What is kept for an owner. `isAccepted`: V3 or V2 has accepted its credentials once. */
interface KeptOfOwner {
  bytes: number
  isAccepted: boolean
}

/** Creates the counts of one process, which are to be refreshed once before they are used. */
export function createKeptBytes(
  db: Kysely<JournalTables>,
  { ownerBytes, newcomerBytes }: KeptLimits,
): KeptBytes {
  const owners = new Map<string, KeptOfOwner>()
  /** Of all owners that were never accepted. */
  let ofOthers = 0
  /** Batches that began in this process. */
  const batches = new Map<number, { readonly owner: string; readonly bytes: number }>()
  const keptOf = (owner: string): KeptOfOwner => {
    const kept = owners.get(owner) ?? { bytes: 0, isAccepted: false }
    owners.set(owner, kept)
    return kept
  }
  const accept = (owner: string): void => {
    const kept = keptOf(owner)
    if (!kept.isAccepted) ofOthers -= kept.bytes
    kept.isAccepted = true
  }
  const add = (owner: string, bytes: number): void => {
    const kept = keptOf(owner)
    kept.bytes += bytes
    if (!kept.isAccepted) ofOthers += bytes
  }
  const take = (batch: number): { readonly owner: string; readonly bytes: number } | undefined => {
    const known = batches.get(batch)
    batches.delete(batch)
    return known
  }
  return {
    hasRoom: (batch) => {
      const { owner, newcomer = false } = batch
      if (!newcomer) accept(owner)
      const bytes = bytesOf(batch)
      const kept = owners.get(owner)
      return kept?.isAccepted === true ? kept.bytes + bytes <= ownerBytes : ofOthers + bytes <= newcomerBytes
    },
    begun: (batch, request) => {
      const own = { owner: request.owner, bytes: bytesOf(request) }
      add(own.owner, own.bytes)
      batches.set(batch, own)
    },
    accepted: (batch) => {
      const known = take(batch)
      if (known !== undefined) accept(known.owner)
    },
    forgotten: (batch) => {
      const known = take(batch)
      if (known !== undefined) add(known.owner, -known.bytes)
    },
    refresh: async () => {
      const { rows } = await sql<{ owner: string; newcomer: number; bytes: number | string }>`
        select owner, newcomer, sum(bytes) as bytes from journal_batches
        where bytes > 0 and bytes < ${MOST_BYTES} group by owner, newcomer`.execute(db)
      const accepted = [...owners].flatMap(([owner, { isAccepted }]) => (isAccepted ? [owner] : []))
      owners.clear()
      batches.clear()
      ofOthers = 0
      for (const owner of accepted) accept(owner)
      for (const { owner, newcomer } of rows) if (newcomer === 0) accept(owner)
      for (const { owner, bytes } of rows) add(owner, Number(bytes))
    },
  }
}

export const tooMuchKept = (): AdapterError =>
  new AdapterError(
    'ADP_OVERLOADED',
    'The journal keeps as many requests of this client as it may, or of all clients whose credentials were never accepted. Nothing was sent.',
  )
