import { AdapterError } from '../errors.ts'
import type { QueueKey } from '../upstream/index.ts'
import type { UpstreamError, V3Credentials } from '../v3/index.ts'
import { BoundedMap } from './bounded-map.ts'
import type { ClientIdentity } from './owner.ts'
import type { Authorisation, Partner } from './partner.ts'

/** A client as far as its credentials are judged by the service. */
interface JudgedClient extends Pick<Authorisation, 'owner' | 'identity' | 'client'> {
  readonly partner: Pick<Partner, 'id' | 'tokens'>
}

/** What the configuration lends a partner for its calls of V3. */
type OwnCredential = 'subscriptionKey' | 'token'

/** Receives what V3 says to the credentials of a partner. */
interface VerdictNotes {
  readonly accepted: (partner: string) => void
  /** Credentials that it had accepted before: a refusal of others says nothing of the partner's. */
  readonly denied: (partner: string) => void
  readonly ownDenied: (partner: string, what: OwnCredential) => void
}

const noNotes: VerdictNotes = {
  accepted: () => undefined,
  denied: () => undefined,
  ownDenied: () => undefined,
}

const MAX_OWNERS = 4_096
/** Of one owner: several machines of a client may hold a token each. */
const PER_OWNER = 4
const MAX_BATCHES = 10_000
const MAX_OPAQUE = 4_096
/** With more of them the oldest are newcomers again until the next answer. */
const MAX_ACCEPTED = 10_000

interface Accepted {
  readonly hash: string
  readonly credentials: V3Credentials
}

/** What the services have said to the credentials of clients: whose share a request uses, and what may finish open records. */
export type AcceptedCredentials = ReturnType<typeof createAcceptedCredentials>

/** Creates the credentials of a process that has seen none. They are kept in memory only. */
export function createAcceptedCredentials(notes: VerdictNotes = noNotes) {
  const owners = new BoundedMap<string, readonly Accepted[]>(MAX_OWNERS)
  const opaque = new BoundedMap<string, V3Credentials>(MAX_OPAQUE)
  const senders = new BoundedMap<number, V3Credentials>(MAX_BATCHES)
  const known = new BoundedMap<string, true>(MAX_ACCEPTED)
  const without = (owner: string, hash: string): readonly Accepted[] =>
    (owners.get(owner) ?? []).filter((one) => one.hash !== hash)
  const keep = ({ owner, identity, client }: JudgedClient): void => {
    const hash = identity.credentialsHash
    // An opaque token may be of any client that has the key.
    if (!identity.isNamed) {
      if (!opaque.has(hash)) opaque.set(hash, client)
    } else if (owners.get(owner)?.[0]?.hash !== hash)
      owners.set(owner, [{ hash, credentials: client }, ...without(owner, hash)].slice(0, PER_OWNER))
  }
  return {
    /** V3 answered 2xx under these credentials. */
    accept: (client: JudgedClient): void => {
      known.set(nameOf(client), true)
      keep(client)
      notes.accepted(client.partner.id)
    },
    /** V2 answered 2xx: requests with the same credentials use the share of their owner, and V3 has still to judge them. */
    acceptByV2: (client: JudgedClient): void => {
      known.set(nameOf(client), true)
    },
    /** V3 answered 401 under these credentials. */
    deny: (client: JudgedClient): void => {
      const { owner, identity, partner } = client
      opaque.delete(identity.credentialsHash)
      if (owners.has(owner)) owners.set(owner, without(owner, identity.credentialsHash))
      if (known.has(nameOf(client))) notes.denied(partner.id)
    },
    /** V3 denied what the adapter lends a partner: that says nothing of its clients. */
    ownDenied: notes.ownDenied,
    /** Whose share of connections, bytes and time a request uses. Credentials are accepted, not owners: V3 verifies the claims of a token. */
    queueKey: (client: JudgedClient): QueueKey => {
      const name = nameOf(client)
      let isAccepted = false
      return {
        partner: client.partner.id,
        owner: client.identity.isNamed ? client.owner : client.identity.credentialsHash,
        isAccepted: () => (isAccepted ||= known.get(name) === true),
      }
    },
    /** Credentials of this owner that the service accepted, the newest first; none where tokens do not name their client. */
    of: (owner: string): readonly V3Credentials[] =>
      (owners.get(owner) ?? []).map(({ credentials }) => credentials),
    /** The credentials of this hash, where the service accepted them: tokens that do not name their client are known by it alone. */
    withHash: (hash: string): V3Credentials | undefined => opaque.get(hash),
    /** A client sends the records of a batch with these credentials. */
    sends: (batch: number, client: V3Credentials): void => {
      senders.set(batch, client)
    },
    /** The credentials that the records of a batch were sent with last; undefined: not known to this process. */
    senderOf: (batch: number): V3Credentials | undefined => senders.get(batch),
    /** Nothing of the batch is left to be finished. */
    finished: (batch: number): void => {
      senders.delete(batch)
    },
  }
}

/** With tokens of the adapter's own, V3 sees no credentials of the client. */
function nameOf({ partner, owner, identity }: JudgedClient): string {
  return partner.tokens === undefined ? identity.credentialsHash : owner
}

/** True for the same key and token. */
export function isSameCredentials(one: V3Credentials, other: V3Credentials): boolean {
  return one.authorization === other.authorization && one.subscriptionKey === other.subscriptionKey
}

/**
 * The error of a call that V3 denies for what the adapter lends it, which is noted for the operator; undefined: it is not denied, or for
 * what its client sent. The gateway's words tell the key from the token (service-facts 12). 403 is no such error: the token is right.
 */
export function ownDenialOf(
  accepted: Pick<AcceptedCredentials, 'ownDenied'>,
  { id, subscriptionKey, tokens }: Pick<Partner, 'id' | 'subscriptionKey' | 'tokens'>,
  { status, entries }: UpstreamError,
): AdapterError | undefined {
  if (status !== 401) return undefined
  const isKey = entries.some(({ message }) => /subscription key/i.test(message))
  if ((isKey ? subscriptionKey : tokens) === undefined) return undefined
  accepted.ownDenied(id, isKey ? 'subscriptionKey' : 'token')
  const what = isKey ? 'subscription key' : 'client'
  return new AdapterError(
    'ADP_V3_CREDENTIALS',
    `V3 denies the ${what} that the adapter is configured with for this partner. Nothing was applied now; its operator has to mend that.`,
  )
}

/** The service's verdict on a token for one batch: accepted, or the refusal that the client gets. */
export type TokenVerdict = 'accepted' | AdapterError

const REMEMBERED_MS = 600_000
const MAX_VERDICTS = 20_000

/** The service's verdicts on tokens, per batch: in memory, for ten minutes and never longer than the token is valid. */
export type TokenVerdicts = ReturnType<typeof createTokenVerdicts>

/** Creates the memory of verdicts. `nowMs`: milliseconds since the epoch. */
export function createTokenVerdicts(nowMs: () => number) {
  const verdicts = new BoundedMap<string, { readonly verdict: TokenVerdict; readonly untilMs: number }>(
    MAX_VERDICTS,
  )
  const asking = new Map<string, Promise<TokenVerdict>>()
  const remember = (name: string, { expiresMs }: ClientIdentity, verdict: TokenVerdict): void => {
    verdicts.set(name, { verdict, untilMs: Math.min(nowMs() + REMEMBERED_MS, expiresMs ?? Infinity) })
  }
  const remembered = (name: string): TokenVerdict | undefined => {
    const known = verdicts.get(name)
    return known !== undefined && nowMs() < known.untilMs ? known.verdict : undefined
  }
  return {
    /** A record of the batch was accepted under this token. */
    accept: (batch: number, identity: ClientIdentity): void =>
      remember(verdictName(batch, identity), identity, 'accepted'),
    /** True while it is remembered that the token was accepted for the batch. */
    isAccepted: (batch: number, identity: ClientIdentity): boolean =>
      remembered(verdictName(batch, identity)) === 'accepted',
    /**
     * The verdict that is remembered, or what `ask` finds out; those who ask for the same at the same time share one answer.
     * What `ask` rejects with is not remembered.
     */
    of: (
      batch: number,
      identity: ClientIdentity,
      ask: () => Promise<TokenVerdict>,
    ): Promise<TokenVerdict> => {
      const name = verdictName(batch, identity)
      const known = remembered(name)
      if (known !== undefined) return Promise.resolve(known)
      const running = asking.get(name)
      if (running !== undefined) return running
      const asked = ask()
        .then((verdict) => {
          remember(name, identity, verdict)
          return verdict
        })
        .finally(() => asking.delete(name))
      asking.set(name, asked)
      return asked
    },
  }
}

const verdictName = (batch: number, { credentialsHash }: ClientIdentity): string =>
  `${batch} ${credentialsHash}`
