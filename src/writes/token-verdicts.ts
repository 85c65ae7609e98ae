import type { AdapterError } from '../errors.ts'
import { BoundedMap } from '../partners/bounded-map.ts'
import type { ClientIdentity } from '../partners/owner.ts'

/** The service's verdict on a token for one batch: accepted, or the refusal that the client gets. */
export type Verdict = 'accepted' | AdapterError

/** The service's verdicts on tokens, per batch: in memory, for ten minutes and never longer than the token is valid. */
export interface TokenVerdicts {
  /** A record of the batch was accepted under this token. */
  accept(batch: number, identity: ClientIdentity): void
  /** True while it is remembered that the token was accepted for the batch. */
  isAccepted(batch: number, identity: ClientIdentity): boolean
  /**
   * The verdict that is remembered, or what `ask` finds out; those who ask for the same at the same time share one answer.
   * What `ask` rejects with is not remembered.
   */
  of(batch: number, identity: ClientIdentity, ask: () => Promise<Verdict>): Promise<Verdict>
}

const REMEMBERED_MS = 600_000
const MAX_VERDICTS = 20_000

/** Creates an empty memory. `nowMs`: milliseconds since the epoch. */
export function createTokenVerdicts(nowMs: () => number): TokenVerdicts {
  const verdicts = new BoundedMap<string, { readonly verdict: Verdict; readonly untilMs: number }>(
    MAX_VERDICTS,
  )
  const asking = new Map<string, Promise<Verdict>>()
  const remember = (name: string, { expiresMs }: ClientIdentity, verdict: Verdict): void => {
    verdicts.set(name, { verdict, untilMs: Math.min(nowMs() + REMEMBERED_MS, expiresMs ?? Infinity) })
  }
  const remembered = (name: string): Verdict | undefined => {
    const known = verdicts.get(name)
    return known !== undefined && nowMs() < known.untilMs ? known.verdict : undefined
  }
  return {
    accept: (batch, identity) => remember(nameOf(batch, identity), identity, 'accepted'),
    isAccepted: (batch, identity) => remembered(nameOf(batch, identity)) === 'accepted',
    of: (batch, identity, ask) => {
      const name = nameOf(batch, identity)
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

const nameOf = (batch: number, { credentialsHash }: ClientIdentity): string => `${batch} ${credentialsHash}`
