import type { OutsideRequest } from './outside-world.ts'

/** A request, or several at once, that want to hold the event loop. */
export interface HostileRequest {
  readonly name: string
  readonly requests: readonly OutsideRequest[]
  /** What V3 answers to reads; an empty page by default. */
  readonly page?: Uint8Array
  /** True: V3 sends its page in chunks of one byte. */
  readonly drips?: boolean
  /** The status of each reply. */
  readonly status: number
}

/** The headers of a client. */
export const credentials = { 'Ocp-Apim-Subscription-Key': 'key', Authorization: 'bearer token' } as const

/** A request that is made when it is wanted: some take seconds to make. Some can be had with a share of their size. */
export type NamedRequest = readonly [name: string, make: (share?: number) => Omit<HostileRequest, 'name'>]

export function makeRequest([name, make]: NamedRequest, share = 1): HostileRequest {
  return { name, ...make(share) }
}

/** Makes so many items. */
export const times = <Item>(count: number, make: (index: number) => Item): Item[] =>
  Array.from({ length: count }, (_, index) => make(index))
