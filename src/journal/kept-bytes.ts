import { type Kysely, sql } from 'kysely'

import { AdapterError } from '../errors.ts'
import { bytesOf } from './core/rows.ts'
import type { NewBatch } from './journal.ts'
import type { JournalTables } from './schema.ts'

/** Limits on stored requests, in bytes before compression. */
export interface KeptLimits {
  /** The limit for each owner whose credentials V3 or V2 has accepted. */
  readonly ownerBytes: number
  /** The limit for all other owners together. */
  readonly newcomerBytes: number
}

export const keptLimits: KeptLimits = { ownerBytes: 64 * 1024 ** 3, newcomerBytes: 256 * 1024 ** 2 }

/**
 * The smallest stored size, in bytes, that is not counted. No request is so large, so a stored size at or above this limit was changed on
 * the disk. Counting it would make the journal refuse other batches for lack of room.
 */
const MOST_BYTES = 1024 ** 3

/** Counts the bytes of stored requests by owner: the content of the tables at the last refresh, plus the changes of this process since then. */
interface KeptBytes {
  hasRoom(batch: NewBatch): boolean
  begun(batch: number, request: NewBatch): void
  /** Records that a record of the batch was confirmed. The owner's credentials count as accepted from then on. */
  accepted(batch: number): void
  forgotten(batch: number): void
  refresh(): Promise<void>
}

/** The stored requests of an owner. `isAccepted` is true once V3 or V2 has accepted the owner's credentials. */
interface KeptOfOwner {
  bytes: number
  isAccepted: boolean
}

/** Creates the count of stored bytes by owner. The count must be refreshed once before use. */
export function createKeptBytes(
  db: Kysely<JournalTables>,
  { ownerBytes, newcomerBytes }: KeptLimits,
): KeptBytes {
  const owners = new Map<string, KeptOfOwner>()
  let ofOthers = 0
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
    'The limit of stored requests is reached, for this client or for all clients whose credentials were never accepted. This copy was not sent. Send the same batch again later.',
  )
