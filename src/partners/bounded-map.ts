/** A map that forgets the entry unused for longest once it has more than `maxEntries`: its keys may come from clients. */
export class BoundedMap<Key, Value> {
  private readonly entries = new Map<Key, Value>()
  private readonly maxEntries: number
  /** The key that was used last: it need not be moved to the end. */
  private latest: Key | undefined
  /** Goes on where the last entry was forgotten: a new iterator would step over the places of all that were deleted before it. */
  private oldest: Iterator<Key> | undefined

  constructor(maxEntries: number) {
    this.maxEntries = maxEntries
  }

  get(key: Key): Value | undefined {
    const value = this.entries.get(key)
    if (value === undefined || key === this.latest) return value
    this.entries.delete(key)
    this.entries.set(key, value)
    this.latest = key
    return value
  }

  set(key: Key, value: Value): void {
    if (key !== this.latest) this.entries.delete(key)
    this.entries.set(key, value)
    this.latest = key
    if (this.entries.size <= this.maxEntries) return
    this.oldest ??= this.entries.keys()
    const next = this.oldest.next()
    if (next.done !== true) this.entries.delete(next.value)
  }

  has(key: Key): boolean {
    return this.entries.has(key)
  }

  delete(key: Key): void {
    this.entries.delete(key)
    if (key === this.latest) this.latest = undefined
  }
}
