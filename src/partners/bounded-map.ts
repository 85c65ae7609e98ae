/** A map that forgets the entry unused for longest once it has more than `maxEntries`: its keys may come from clients. */
export class BoundedMap<Key, Value> {
  private readonly entries = new Map<Key, Value>()
  private readonly maxEntries: number

  constructor(maxEntries: number) {
    this.maxEntries = maxEntries
  }

  get(key: Key): Value | undefined {
    const value = this.entries.get(key)
    if (value !== undefined) this.set(key, value)
    return value
  }

  set(key: Key, value: Value): void {
    this.entries.delete(key)
    this.entries.set(key, value)
    if (this.entries.size <= this.maxEntries) return
    const oldest = this.entries.keys().next()
    if (oldest.done !== true) this.entries.delete(oldest.value)
  }

  has(key: Key): boolean {
    return this.entries.has(key)
  }

  delete(key: Key): void {
    this.entries.delete(key)
  }
}
