/**
 * A stream of pseudo-random numbers. The numbers depend only on the seed and the name of the stream, so they are the same on every machine.
 */
export interface Random {
  /** Returns a number in [0, 1). */
  next(): number
  /** Returns an integer in [0, bound). */
  below(bound: number): number
  pick<Item>(items: readonly [Item, ...Item[]]): Item
  chance(probability: number): boolean
}

/** Mixes 32 bits without collisions (the finalizer of MurmurHash3, a bijection). */
export function mix32(value: number): number {
  let bits = value | 0
  bits = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b)
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35)
  return (bits ^ (bits >>> 16)) >>> 0
}

export function unmix32(value: number): number {
  let bits = value | 0
  bits = Math.imul(bits ^ (bits >>> 16), 0x7ed1b41d)
  bits = Math.imul(bits ^ (bits >>> 13) ^ (bits >>> 26), 0xa5cb9243)
  return (bits ^ (bits >>> 16)) >>> 0
}

/** Hashes a name to 32 bits (FNV-1a), so that streams and ids of different names are independent. */
export function hashName(name: string): number {
  let hash = 0x811c9dc5
  for (let at = 0; at < name.length; at += 1) hash = Math.imul(hash ^ name.charCodeAt(at), 0x01000193)
  return hash >>> 0
}

/** A stream by the algorithm SplitMix32. A class is faster than closures, and a school needs hundreds of thousands of streams. */
class Stream implements Random {
  private state: number

  constructor(state: number) {
    this.state = state
  }

  next(): number {
    this.state = (this.state + 0x9e3779b9) | 0
    return mix32(this.state) / 0x1_0000_0000
  }

  below(bound: number): number {
    return Math.floor(this.next() * bound)
  }

  pick<Item>(items: readonly [Item, ...Item[]]): Item {
    return items[this.below(items.length)] ?? items[0]
  }

  chance(probability: number): boolean {
    return this.next() < probability
  }
}

/** Creates a random stream. Streams with different names are independent. */
export function createRandom(seed: number, name: string): Random {
  return new Stream(mix32(seed ^ hashName(name)))
}
