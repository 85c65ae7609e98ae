import type { V3Credentials } from '../v3/index.ts'
import { BoundedMap } from './bounded-map.ts'
import type { Authorisation } from './partner.ts'

/** A client as far as its credentials are judged by the service. */
export type JudgedClient = Pick<Authorisation, 'owner' | 'identity' | 'client'>

/** The credentials that may finish what a client left behind. Kept in memory only. */
export interface AcceptedCredentials {
  /** The service answered 2xx under these credentials. */
  accept(client: JudgedClient): void
  /** The service answered 401 under these credentials. */
  deny(client: JudgedClient): void
  /** Credentials of this owner that the service accepted, the newest first; none where tokens do not name their client. */
  of(owner: string): readonly V3Credentials[]
  /** A client sends the records of a batch with these credentials. */
  sends(batch: number, client: V3Credentials): void
  /** The credentials that the records of a batch were sent with last; undefined: not known to this process. */
  senderOf(batch: number): V3Credentials | undefined
  /** Nothing of the batch is left to be finished. */
  finished(batch: number): void
}

const MAX_OWNERS = 4_096
/** Of one owner: several machines of a client may hold a token each. */
const PER_OWNER = 4
const MAX_BATCHES = 10_000

interface Accepted {
  readonly hash: string
  readonly credentials: V3Credentials
}

/** Creates the credentials of a process that has seen none. */
export function createAcceptedCredentials(): AcceptedCredentials {
  const owners = new BoundedMap<string, readonly Accepted[]>(MAX_OWNERS)
  const senders = new BoundedMap<number, V3Credentials>(MAX_BATCHES)
  const without = (owner: string, hash: string): readonly Accepted[] =>
    (owners.get(owner) ?? []).filter((one) => one.hash !== hash)
  return {
    accept: ({ owner, identity, client }) => {
      // An opaque token may be of any client that has the key.
      if (!identity.isNamed) return
      const hash = identity.credentialsHash
      if (owners.get(owner)?.[0]?.hash === hash) return
      owners.set(owner, [{ hash, credentials: client }, ...without(owner, hash)].slice(0, PER_OWNER))
    },
    deny: ({ owner, identity }) => {
      if (owners.has(owner)) owners.set(owner, without(owner, identity.credentialsHash))
    },
    of: (owner) => (owners.get(owner) ?? []).map(({ credentials }) => credentials),
    sends: (batch, client) => {
      senders.set(batch, client)
    },
    senderOf: (batch) => senders.get(batch),
    finished: (batch) => {
      senders.delete(batch)
    },
  }
}

/** True for the same key and token. */
export function isSameCredentials(one: V3Credentials, other: V3Credentials): boolean {
  return one.authorization === other.authorization && one.subscriptionKey === other.subscriptionKey
}
