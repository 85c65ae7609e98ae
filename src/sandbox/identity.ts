import { hashName, mix32, unmix32 } from './random.ts'

/**
 * Ids that are computed from the seed, so that an entity has the same guid on every machine and every day. `kind` is the kind of the
 * entity, such as `learner`, `session` or `LearnerAddress`. Entities of different kinds never have the same id.
 */
export interface Identities {
  guid(kind: string, first: number, second?: number): string
  /** Returns the two numbers that a guid of this kind and seed contains, or `undefined` for any other guid. */
  read(kind: string, guid: string): { first: number; second: number } | undefined
}

const GUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
/** The two hexadecimal digits of each byte. Reading this table takes a fifth of the time of `toString(16)`, and a school has thousands of ids. */
const bytes = Array.from({ length: 256 }, (_, value) => value.toString(16).padStart(2, '0'))
const hex16 = (value: number): string => `${bytes[(value >>> 8) & 0xff]}${bytes[value & 0xff]}`
const hex32 = (value: number): string => hex16(value >>> 16) + hex16(value)

/** The guid that asks the service to assign an id (service.md 2.10). */
export const zeroGuid = '00000000-0000-0000-0000-000000000000'

/**
 * Creates the ids of a seed. A guid contains two numbers, each mixed by a bijection, and a checksum. The guid looks random, but its
 * numbers can be read back. A read by the id of a mark therefore finds the learner and the session, even if no mark is stored.
 */
export function createIdentities(seed: number): Identities {
  const keys = new Map<string, number>()
  const keyOf = (kind: string): number => {
    const known = keys.get(kind)
    if (known !== undefined) return known
    const key = mix32(seed ^ hashName(kind))
    keys.set(kind, key)
    return key
  }
  const guid = (kind: string, first: number, second = 0): string => {
    const key = keyOf(kind)
    const head = mix32(first ^ key)
    const tail = mix32(second ^ mix32(key ^ head))
    const check = mix32(head ^ mix32(tail ^ key))
    // The guid has version 4 and a variant from 8 to b (RFC 9562 5.4).
    const middle = `${hex16(0x4000 | (check & 0xfff))}-${hex16(0x8000 | ((check >>> 12) & 0x3fff))}`
    return `${hex32(head)}-${hex16(check >>> 16)}-${middle}-${hex16(mix32(check ^ key))}${hex32(tail)}`
  }
  const read = (kind: string, text: string): { first: number; second: number } | undefined => {
    if (!GUID.test(text)) return undefined
    const key = keyOf(kind)
    const head = Number.parseInt(text.slice(0, 8), 16)
    const first = unmix32(head) ^ key
    const second = unmix32(Number.parseInt(text.slice(28), 16)) ^ mix32(key ^ head)
    return guid(kind, first, second) === text ? { first, second } : undefined
  }
  return { guid, read }
}
