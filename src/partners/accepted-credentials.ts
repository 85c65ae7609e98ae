import type { V3Credentials } from '../v3/index.ts'
import { BoundedMap } from './bounded-map.ts'
import type { Authorisation, Partner } from './partner.ts'
import type { QueueKeyOwner } from './queue-keys.ts'

/** A client as far as its credentials are judged by the service. */
export interface JudgedClient extends Pick<Authorisation, 'owner' | 'identity' | 'client'> {
  readonly partner: Pick<Partner, 'id'>
}

/** What the configuration lends a partner for its calls of V3. */
type OwnCredential = 'subscriptionKey' | 'token'

/** The credentials that may finish the open records of a client. Kept in memory only. */
export interface AcceptedCredentials {
  /** The service answered 2xx under these credentials. */
  accept(client: JudgedClient): void
  /** The service answered 401 under these credentials. */
  deny(client: JudgedClient & QueueKeyOwner): void
  /** The service denied what the adapter lends a partner: that says nothing of its clients. */
  ownDenied(partner: string, what: OwnCredential): void
  /** Credentials of this owner that the service accepted, the newest first; none where tokens do not name their client. */
  of(owner: string): readonly V3Credentials[]
  /** The credentials of this hash, where the service accepted them: tokens that do not name their client are known by it alone. */
  withHash(hash: string): V3Credentials | undefined
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
const MAX_OPAQUE = 4_096

interface Accepted {
  readonly hash: string
  readonly credentials: V3Credentials
}

/** Creates the credentials of a process that has seen none. */
export function createAcceptedCredentials(): AcceptedCredentials {
  const owners = new BoundedMap<string, readonly Accepted[]>(MAX_OWNERS)
  const opaque = new BoundedMap<string, V3Credentials>(MAX_OPAQUE)
  const senders = new BoundedMap<number, V3Credentials>(MAX_BATCHES)
  const without = (owner: string, hash: string): readonly Accepted[] =>
    (owners.get(owner) ?? []).filter((one) => one.hash !== hash)
  return {
    accept: ({ owner, identity, client }) => {
      const hash = identity.credentialsHash
      // An opaque token may be of any client that has the key.
      if (!identity.isNamed) {
        if (!opaque.has(hash)) opaque.set(hash, client)
        return
      }
      if (owners.get(owner)?.[0]?.hash === hash) return
      owners.set(owner, [{ hash, credentials: client }, ...without(owner, hash)].slice(0, PER_OWNER))
    },
    deny: ({ owner, identity }) => {
      opaque.delete(identity.credentialsHash)
      if (owners.has(owner)) owners.set(owner, without(owner, identity.credentialsHash))
    },
    ownDenied: () => undefined,
    of: (owner) => (owners.get(owner) ?? []).map(({ credentials }) => credentials),
    withHash: (hash) => opaque.get(hash),
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
