import { NEWCOMERS, type Share } from './share.ts'

/** Something that waits, and whose it is. */
export interface Waiting {
  readonly share: Share
}

/**
 * A line in which partners take turns, within a partner its owners, within an owner the order of arrival. Owners that V3 has
 * not accepted have one turn together, as if they were one more partner.
 */
export class FairLine<Item extends Waiting> {
  /** Maps keep the order of their keys: whoever was served goes to the end. */
  private readonly groups = new Map<string, Map<string, Set<Item>>>()
  private count = 0

  get size(): number {
    return this.count
  }

  push(item: Item): void {
    const { share } = item
    const group = share.isAccepted() ? share.partner : NEWCOMERS
    this.add(group, share.owner, item)
    this.count += 1
  }

  remove(item: Item): void {
    const { partner, owner } = item.share
    if (this.delete(NEWCOMERS, owner, item) || this.delete(partner, owner, item)) this.count -= 1
  }

  /** Takes out the next item whose holder may be served; undefined where there is none. */
  shift(mayServe: (holder: string) => boolean = () => true): Item | undefined {
    if (this.count === 0) return undefined
    this.promote()
    for (const [group, owners] of this.groups) {
      for (const [owner, items] of owners) {
        const holder = group === NEWCOMERS ? NEWCOMERS : owner
        if (!mayServe(holder)) {
          if (holder === NEWCOMERS) break
          continue
        }
        const [item] = items
        if (item === undefined) continue
        items.delete(item)
        this.count -= 1
        rotate(owners, owner, items)
        rotate(this.groups, group, owners)
        return item
      }
    }
    return undefined
  }

  /** Moves the owners that V3 has accepted meanwhile to their partner. */
  private promote(): void {
    const newcomers = this.groups.get(NEWCOMERS)
    if (newcomers === undefined) return
    for (const [owner, items] of newcomers) {
      const [first] = items
      if (first?.share.isAccepted() !== true) continue
      newcomers.delete(owner)
      for (const item of items) this.add(item.share.partner, owner, item)
    }
    if (newcomers.size === 0) this.groups.delete(NEWCOMERS)
  }

  private add(group: string, owner: string, item: Item): void {
    let owners = this.groups.get(group)
    if (owners === undefined) this.groups.set(group, (owners = new Map<string, Set<Item>>()))
    const items = owners.get(owner)
    if (items === undefined) owners.set(owner, new Set([item]))
    else items.add(item)
  }

  private delete(group: string, owner: string, item: Item): boolean {
    const owners = this.groups.get(group)
    const items = owners?.get(owner)
    if (owners === undefined || items?.delete(item) !== true) return false
    if (items.size === 0) owners.delete(owner)
    if (owners.size === 0) this.groups.delete(group)
    return true
  }
}

/** Puts what was served at the end of its line, or takes it out when nothing is left in it. */
function rotate<Value extends { readonly size: number }>(
  line: Map<string, Value>,
  key: string,
  value: Value,
): void {
  if (value.size > 0 && line.size === 1) return
  line.delete(key)
  if (value.size > 0) line.set(key, value)
}
