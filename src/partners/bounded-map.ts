/** A map that forgets the entry unused for longest once it has more than `maxEntries`: its keys may come from clients. */
export class BoundedMap<Key, Value> {
  private readonly entries = new Map<Key, Value>()
  private readonly maxEntries: number
  /** The key that was used last: it need not be moved to the end. */
  private latest: Key | undefined

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
    for (const oldest of this.entries.keys()) {
      this.entries.delete(oldest)
      return
    }
  }

  has(key: Key): boolean {
    return this.entries.has(key)
  }

  delete(key: Key): void {
    this.entries.delete(key)
    if (key === this.latest) this.latest = undefined
  }
}
