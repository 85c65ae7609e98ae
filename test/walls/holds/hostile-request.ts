import type { OutsideRequest } from './outside-world.ts'

/** One request or several concurrent requests that try to block the event loop. */
export interface HostileRequest {
  readonly name: string
  readonly requests: readonly OutsideRequest[]
  /** The reply of V3 to reads. Default: an empty page. */
  readonly page?: Uint8Array
  /** True if V3 sends its page in chunks of one byte. */
  readonly drips?: boolean
  /** The expected status of each reply. */
  readonly status: number
}

export const credentials = { 'Ocp-Apim-Subscription-Key': 'key', Authorization: 'bearer token' } as const

/**
 * A request that is built on demand, because some requests take seconds to build. `share` is the fraction of the full size, by default 1.
 */
export type NamedRequest = readonly [name: string, make: (share?: number) => Omit<HostileRequest, 'name'>]

export function makeRequest([name, make]: NamedRequest, share = 1): HostileRequest {
  return { name, ...make(share) }
}

export const times = <Item>(count: number, make: (index: number) => Item): Item[] =>
  Array.from({ length: count }, (_, index) => make(index))
