/** A map of at most `maxEntries` entries. The map evicts the least recently used entry, because its keys may come from clients. */
export class BoundedMap<Key, Value> extends Map<Key, Value> {
  private readonly maxEntries: number

  constructor(maxEntries: number) {
    super()
    this.maxEntries = maxEntries
  }

  override get(key: Key): Value | undefined {
    const value = super.get(key)
    if (value !== undefined) this.set(key, value)
    return value
  }

  override set(key: Key, value: Value): this {
    this.delete(key)
    super.set(key, value)
    const oldest = this.keys().next()
    if (this.size > this.maxEntries && oldest.done !== true) this.delete(oldest.value)
    return this
  }
}
