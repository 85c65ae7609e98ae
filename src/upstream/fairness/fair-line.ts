import { NEWCOMERS, type QueueKey } from './queue-key.ts'

/** Something that waits, and whose it is. */
export interface Waiting {
  readonly queueKey: QueueKey
}

/** The waiting calls of one owner, in the order of arrival. */
interface OwnerQueue<Item> {
  readonly owner: string
  readonly items: Queue<Item>
}

/** Owners that take turns: those of one partner, or all newcomers. The first is served next. */
interface Group<Item> {
  readonly name: string
  readonly queues: OwnerQueue<Item>[]
  readonly byOwner: Map<string, OwnerQueue<Item>>
}

/**
 * A line in which partners take turns, within a partner its owners, within an owner the order of arrival. Owners that V3 has
 * not accepted have one turn together, as if they were one more partner. One item costs O(1), apart from owners that are
 * passed over.
 */
export class FairLine<Item extends Waiting> {
  private readonly groups: Group<Item>[] = []
  private readonly byName = new Map<string, Group<Item>>()
  private count = 0

  get size(): number {
    return this.count
  }

  push(item: Item): void {
    const { queueKey } = item
    const newcomers = this.byName.get(NEWCOMERS)
    const isAccepted = queueKey.isAccepted()
    // Calls that the owner waits for since before it was accepted stay ahead.
    if (isAccepted && newcomers?.byOwner.has(queueKey.owner) === true) this.promote(newcomers)
    this.queueOf(isAccepted ? queueKey.partner : NEWCOMERS, queueKey.owner).push(item)
    this.count += 1
  }

  remove(item: Item): void {
    const { partner, owner } = item.queueKey
    if (this.removeFrom(NEWCOMERS, owner, item) || this.removeFrom(partner, owner, item)) this.count -= 1
  }

  /** Takes out the next item whose holder may be served; undefined where there is none. */
  shift(mayServe: (holder: string) => boolean = () => true): Item | undefined {
    if (this.count === 0) return undefined
    const { groups, byName } = this
    const newcomers = byName.get(NEWCOMERS)
    if (newcomers !== undefined) this.promote(newcomers)
    for (let index = 0; index < groups.length; index += 1) {
      const group = groups[index]
      const item = group && shiftFrom(group, mayServe)
      if (item === undefined) continue
      this.count -= 1
      rotate(groups, index)
      if (group?.queues.length === 0) this.drop(group)
      return item
    }
    return undefined
  }

  /** Moves the owners that V3 has accepted since to their partner. */
  private promote(newcomers: Group<Item>): void {
    for (const queue of newcomers.queues.filter(
      ({ items }) => items.first()?.queueKey.isAccepted() === true,
    )) {
      dropQueue(newcomers, queue)
      for (let item = queue.items.shift(); item !== undefined; item = queue.items.shift())
        this.queueOf(item.queueKey.partner, queue.owner).push(item)
    }
    if (newcomers.queues.length === 0) this.drop(newcomers)
  }

  private queueOf(name: string, owner: string): Queue<Item> {
    let group = this.byName.get(name)
    if (group === undefined) {
      group = { name, queues: [], byOwner: new Map() }
      this.byName.set(name, group)
      this.groups.push(group)
    }
    let queue = group.byOwner.get(owner)
    if (queue === undefined) {
      queue = { owner, items: new Queue() }
      group.byOwner.set(owner, queue)
      group.queues.push(queue)
    }
    return queue.items
  }

  private removeFrom(name: string, owner: string, item: Item): boolean {
    const group = this.byName.get(name)
    const queue = group?.byOwner.get(owner)
    if (group === undefined || queue?.items.remove(item) !== true) return false
    if (queue.items.length === 0) dropQueue(group, queue)
    if (group.queues.length === 0) this.drop(group)
    return true
  }

  private drop(group: Group<Item>): void {
    this.byName.delete(group.name)
    this.groups.splice(this.groups.indexOf(group), 1)
  }
}

function shiftFrom<Item>(group: Group<Item>, mayServe: (holder: string) => boolean): Item | undefined {
  const { name, queues } = group
  if (name === NEWCOMERS && !mayServe(NEWCOMERS)) return undefined
  for (let index = 0; index < queues.length; index += 1) {
    const queue = queues[index]
    if (queue === undefined || (name !== NEWCOMERS && !mayServe(queue.owner))) continue
    const item = queue.items.shift()
    rotate(queues, index)
    if (queue.items.length === 0) dropQueue(group, queue)
    return item
  }
  return undefined
}

function dropQueue<Item>({ queues, byOwner }: Group<Item>, queue: OwnerQueue<Item>): void {
  byOwner.delete(queue.owner)
  queues.splice(queues.indexOf(queue), 1)
}

/** Moves a served owner to the end. */
function rotate(line: unknown[], index: number): void {
  if (line.length > 1) line.push(...line.splice(index, 1))
}

/** Items are taken out so often that moving all the others each time would count. */
const COMPACT_AT = 64

/** First in, first out. */
class Queue<Item> {
  private items: Item[] = []
  private head = 0

  get length(): number {
    return this.items.length - this.head
  }

  first(): Item | undefined {
    return this.items[this.head]
  }

  push(item: Item): void {
    this.items.push(item)
  }

  shift(): Item | undefined {
    const item = this.items[this.head]
    if (item === undefined) return undefined
    this.head += 1
    if (this.head === this.items.length || (this.head >= COMPACT_AT && this.head * 2 >= this.items.length)) {
      this.items = this.items.slice(this.head)
      this.head = 0
    }
    return item
  }

  remove(item: Item): boolean {
    const index = this.items.indexOf(item, this.head)
    if (index >= 0) this.items.splice(index, 1)
    return index >= 0
  }
}
