/** Failed attempts that an address may make at once, and how long one of them counts. */
const BURST = 10
const EACH_MS = 6_000
/** Of all addresses together. */
const TOTAL = 100
const EACH_OF_ALL_MS = 600
const MAX_ADDRESSES = 10_000

interface Bucket {
  failed: number
  atMs: number
}

/** Creates the limit of failed attempts to sign in, by address and in all: 10 failures at once from one address, then one each 6 s; 100 at once in all, then one each 0.6 s. */
export function createLoginLimit(nowMs: () => number) {
  const all: Bucket = { failed: 0, atMs: nowMs() }
  const addresses = new Map<string, Bucket>()
  const drained = (bucket: Bucket, eachMs: number): Bucket => {
    const passed = (nowMs() - bucket.atMs) / eachMs
    return Object.assign(bucket, { failed: Math.max(0, bucket.failed - passed), atMs: nowMs() })
  }
  return {
    /** Seconds to wait before the next attempt of this address; 0: it may try. */
    waitOf: (address: string): number => {
      const own = addresses.get(address)
      const ownMs = own === undefined ? 0 : (drained(own, EACH_MS).failed + 1 - BURST) * EACH_MS
      const allMs = (drained(all, EACH_OF_ALL_MS).failed + 1 - TOTAL) * EACH_OF_ALL_MS
      // One that has not failed yet is let in whatever others do.
      return Math.ceil(Math.max(0, ownMs, own === undefined ? 0 : allMs) / 1_000)
    },
    failed: (address: string): void => {
      const own = addresses.get(address) ?? { failed: 0, atMs: nowMs() }
      drained(own, EACH_MS).failed += 1
      drained(all, EACH_OF_ALL_MS).failed += 1
      addresses.delete(address)
      addresses.set(address, own)
      const [oldest] = addresses.keys()
      if (addresses.size > MAX_ADDRESSES && oldest !== undefined) addresses.delete(oldest)
    },
  }
}
