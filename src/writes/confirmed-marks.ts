/** The marks that V3 confirmed last in this process, each with the time that it showed last. */
export interface ConfirmedMarks {
  add(externalId: string, recordedOn: string): void
  /** True for a mark that was confirmed with this time. False for one that was evicted. */
  has(externalId: string, recordedOn: string): boolean
}

/** Each mark has one slot and replaces the mark that had it before. Most of the latest tens of thousands are remembered, in 768 KiB. */
const SLOTS = 65_536

/**
 * Creates an empty memory. It holds hashes outside the heap: an object for each mark costs more time in the garbage collector
 * than all else that is done with it. A mark is mistaken for another only where 64 bits of ids and 32 bits of times collide.
 */
export function createConfirmedMarks(slots = SLOTS): ConfirmedMarks {
  const ids = new Uint32Array(2 * slots)
  const times = new Uint32Array(slots)
  let first = 0
  let second = 0
  /** Both hashes of an id in one pass: this is done for every mark. */
  const hashId = (id: string): void => {
    let [one, other] = [SEED, OTHER_SEED]
    for (let at = 0; at < id.length; at += 1) {
      const code = id.charCodeAt(at) | LOWER
      one = Math.imul(one ^ code, PRIME)
      other = Math.imul(other ^ code, OTHER_PRIME)
    }
    first = one >>> 0
    second = other >>> 0
  }
  return {
    add: (externalId, recordedOn) => {
      hashId(externalId)
      const slot = first % slots
      ids[2 * slot] = first
      ids[2 * slot + 1] = second
      times[slot] = hashTime(recordedOn)
    },
    has: (externalId, recordedOn) => {
      hashId(externalId)
      const slot = first % slots
      return ids[2 * slot] === first && ids[2 * slot + 1] === second && times[slot] === hashTime(recordedOn)
    },
  }
}

// FNV-1a, 32 bits. Ids and times come from the service, which gains nothing by collisions.
const PRIME = 0x01000193
const OTHER_PRIME = 0x85ebca6b
const SEED = 0x811c9dc5
const OTHER_SEED = 0x5bd1e995
/** Makes the letters A to F small, and changes nothing else in a guid. */
const LOWER = 0x20

function hashTime(text: string): number {
  let hash = SEED
  for (let at = 0; at < text.length; at += 1) hash = Math.imul(hash ^ text.charCodeAt(at), PRIME)
  return hash >>> 0
}
