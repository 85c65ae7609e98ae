import { createRelay, type Relay, type RelayOptions } from './relay.ts'

/** The relays of all base addresses of V2. */
export interface Relays {
  of(baseUrl: URL): Relay
  close(): void
}

/** Creates relays as they are needed: partners may have a gateway of their own, and a reload may add one. */
export function createRelays(options: Omit<RelayOptions, 'baseUrl'>): Relays {
  const relays = new Map<string, Relay>()
  return {
    of: (baseUrl) => {
      const known = relays.get(baseUrl.href)
      if (known !== undefined) return known
      const relay = createRelay({ ...options, baseUrl })
      relays.set(baseUrl.href, relay)
      return relay
    },
    close: () => {
      for (const relay of relays.values()) relay.close()
    },
  }
}
