import { AdapterError } from '../errors.ts'
import type { QueueKey } from '../upstream/index.ts'
import type { UpstreamError, V3Credentials } from '../v3/index.ts'
import { BoundedMap } from './bounded-map.ts'
import type { ClientIdentity } from './owner.ts'
import type { Authorisation, Partner } from './partner.ts'

/** The members of a client on which V3's verdict on its credentials depends. */
interface JudgedClient extends Pick<Authorisation, 'owner' | 'identity' | 'client'> {
  readonly partner: Pick<Partner, 'id' | 'tokens'>
}

type OwnCredential = 'subscriptionKey' | 'token'

interface VerdictListener {
  readonly accepted: (partner: string) => void
  /** Called if V3 denied credentials that V3 or V2 accepted before. A denial of other credentials says nothing about the partner. */
  readonly denied: (partner: string) => void
  readonly ownDenied: (partner: string, what: OwnCredential) => void
}

const noListener: VerdictListener = {
  accepted: () => undefined,
  denied: () => undefined,
  ownDenied: () => undefined,
}

const MAX_OWNERS = 4_096
/** Maximum number of credentials of one owner. Several machines of a client may each have a token. */
const PER_OWNER = 4
const MAX_BATCHES = 10_000
const MAX_OPAQUE = 4_096
/** Maximum number of accepted credentials. The least recently used are evicted; their clients count as newcomers until accepted again. */
const MAX_ACCEPTED = 10_000

interface Accepted {
  readonly hash: string
  readonly credentials: V3Credentials
}

/**
 * The client credentials that V3 or V2 accepted. A request with accepted credentials uses the share of its owner, and any other request the
 * share of newcomers. Recovery may finish open records of an owner with credentials that V3 accepted.
 */
export type AcceptedCredentials = ReturnType<typeof createAcceptedCredentials>

/** Creates the store of accepted credentials. The store is only in memory and never on a disk. */
export function createAcceptedCredentials(listener: VerdictListener = noListener) {
  const owners = new BoundedMap<string, readonly Accepted[]>(MAX_OWNERS)
  const opaque = new BoundedMap<string, V3Credentials>(MAX_OPAQUE)
  const senders = new BoundedMap<number, V3Credentials>(MAX_BATCHES)
  const known = new BoundedMap<string, true>(MAX_ACCEPTED)
  const without = (owner: string, hash: string): readonly Accepted[] =>
    (owners.get(owner) ?? []).filter((one) => one.hash !== hash)
  const store = ({ owner, identity, client }: JudgedClient): void => {
    const hash = identity.credentialsHash
    // A token that does not name its client may belong to any client with this key, so it is stored by its hash and not for the owner.
    if (!identity.isNamed) {
      if (!opaque.has(hash)) opaque.set(hash, client)
    } else if (owners.get(owner)?.[0]?.hash !== hash)
      owners.set(owner, [{ hash, credentials: client }, ...without(owner, hash)].slice(0, PER_OWNER))
  }
  return {
    /** Stores the credentials that V3 accepted (2xx). */
    accept: (client: JudgedClient): void => {
      known.set(acceptedKey(client), true)
      store(client)
      listener.accepted(client.partner.id)
    },
    /** Marks credentials that V2 accepted (2xx). Their requests use their owner's share, but recovery does not use them for V3 yet. */
    acceptByV2: (client: JudgedClient): void => {
      known.set(acceptedKey(client), true)
    },
    /** Removes credentials that V3 denied (401), and reports the denial if the credentials were accepted before. */
    deny: (client: JudgedClient): void => {
      const { owner, identity, partner } = client
      opaque.delete(identity.credentialsHash)
      if (owners.has(owner)) owners.set(owner, without(owner, identity.credentialsHash))
      if (known.has(acceptedKey(client))) listener.denied(partner.id)
    },
    /** Reports that V3 denied the adapter's own credentials for a partner, which says nothing about the partner's clients. */
    ownDenied: listener.ownDenied,
    /**
     * Returns the queue key of a request. Its `isAccepted` checks the credentials and not the owner, because a token may claim any owner.
     */
    queueKey: (client: JudgedClient): QueueKey => {
      const name = acceptedKey(client)
      let isAccepted = false
      return {
        partner: client.partner.id,
        owner: client.identity.isNamed ? client.owner : client.identity.credentialsHash,
        isAccepted: () => (isAccepted ||= known.get(name) === true),
      }
    },
    /** Returns the accepted credentials of an owner, newest first. The list is empty if tokens do not name their client. */
    of: (owner: string): readonly V3Credentials[] =>
      (owners.get(owner) ?? []).map(({ credentials }) => credentials),
    /** Returns the credentials with this hash if their token does not name its client, otherwise `undefined`. */
    withHash: (hash: string): V3Credentials | undefined => opaque.get(hash),
    setSender: (batch: number, client: V3Credentials): void => {
      senders.set(batch, client)
    },
    /** Returns the credentials of the client that last sent this batch to this process, or `undefined` if there is none. */
    senderOf: (batch: number): V3Credentials | undefined => senders.get(batch),
    forgetSender: (batch: number): void => {
      senders.delete(batch)
    },
  }
}

/**
 * Returns the key under which accepted credentials of a client are stored. If the adapter uses its own tokens, the key is the owner, because
 * V3 does not see the client's credentials.
 */
function acceptedKey({ partner, owner, identity }: JudgedClient): string {
  return partner.tokens === undefined ? identity.credentialsHash : owner
}

export function isSameCredentials(one: V3Credentials, other: V3Credentials): boolean {
  return one.authorization === other.authorization && one.subscriptionKey === other.subscriptionKey
}

/**
 * Returns the error of a call that V3 denied because of the adapter's own credentials, and reports the denial. Returns `undefined` for any
 * other call. The gateway's message tells a wrong key from a wrong token (service-facts 12). A 403 is not such a denial, because the token
 * is valid.
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
    `V3 denied the ${what} in the adapter's configuration of this partner. Nothing was applied. The operator must correct the configuration.`,
  )
}

/** V3's verdict on a token for one batch: the token is accepted, or the client gets this error. */
export type TokenVerdict = 'accepted' | AdapterError

const REMEMBERED_MS = 600_000
const MAX_VERDICTS = 20_000

/** V3's verdicts on tokens for batches. A verdict stays in memory for ten minutes, but not longer than the token is valid. */
export type TokenVerdicts = ReturnType<typeof createTokenVerdicts>

/** Creates the store of verdicts. `nowMs` returns milliseconds since the epoch. */
export function createTokenVerdicts(nowMs: () => number) {
  const verdicts = new BoundedMap<string, { readonly verdict: TokenVerdict; readonly untilMs: number }>(
    MAX_VERDICTS,
  )
  const pending = new Map<string, Promise<TokenVerdict>>()
  const remember = (name: string, { expiresMs }: ClientIdentity, verdict: TokenVerdict): void => {
    verdicts.set(name, { verdict, untilMs: Math.min(nowMs() + REMEMBERED_MS, expiresMs ?? Infinity) })
  }
  const remembered = (name: string): TokenVerdict | undefined => {
    const known = verdicts.get(name)
    return known !== undefined && nowMs() < known.untilMs ? known.verdict : undefined
  }
  return {
    accept: (batch: number, identity: ClientIdentity): void =>
      remember(verdictName(batch, identity), identity, 'accepted'),
    isAccepted: (batch: number, identity: ClientIdentity): boolean =>
      remembered(verdictName(batch, identity)) === 'accepted',
    /** Returns the stored verdict, or the result of `ask`. Concurrent callers share one `ask`. If `ask` rejects, nothing is stored. */
    of: (
      batch: number,
      identity: ClientIdentity,
      ask: () => Promise<TokenVerdict>,
    ): Promise<TokenVerdict> => {
      const name = verdictName(batch, identity)
      const known = remembered(name)
      if (known !== undefined) return Promise.resolve(known)
      const running = pending.get(name)
      if (running !== undefined) return running
      const asked = ask()
        .then((verdict) => {
          remember(name, identity, verdict)
          return verdict
        })
        .finally(() => pending.delete(name))
      pending.set(name, asked)
      return asked
    },
  }
}

const verdictName = (batch: number, { credentialsHash }: ClientIdentity): string =>
  `${batch} ${credentialsHash}`
