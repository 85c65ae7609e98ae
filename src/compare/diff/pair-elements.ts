import { contentKey } from './content-key.ts'
import { isIncreasing } from './moved.ts'
import { idOf, isMembers, memberOf } from './values.ts'

/** The elements of two lists, those with one key side by side. */
export interface PairedElements {
  /** With how often each occurs on either side. */
  readonly pairs: readonly {
    readonly v2: unknown
    readonly v3: unknown
    readonly v2Count: number
    readonly v3Count: number
  }[]
  readonly v2Only: readonly unknown[]
  readonly v3Only: readonly unknown[]
  readonly isInOrder: boolean
}

/**
 * Pairs the elements of two lists by their ExternalID, without one by their content. Where one element without an id is left on either
 * side, those two are one element that changed.
 */
export function pairElements(v2: readonly unknown[], v3: readonly unknown[]): PairedElements {
  const v3Keys = positionsOf(v3)
  const pairs: PairedElements['pairs'][number][] = []
  const matched: number[] = []
  const v2Only: unknown[] = []
  for (const [key, positions] of positionsOf(v2)) {
    const others = v3Keys.get(key)
    v3Keys.delete(key)
    if (others === undefined) {
      v2Only.push(...positions.map((at) => v2[at]))
      continue
    }
    const [one = 0, other = 0] = [positions[0], others[0]]
    matched.push(other)
    pairs.push({ v2: v2[one], v3: v3[other], v2Count: positions.length, v3Count: others.length })
  }
  const v3Only = [...v3Keys.values()].flat().map((at) => v3[at])
  const isInOrder = isIncreasing(matched)
  const [one, other] = [v2Only[0], v3Only[0]]
  if (v2Only.length !== 1 || v3Only.length !== 1 || hasId(one) || hasId(other))
    return { pairs, v2Only, v3Only, isInOrder }
  pairs.push({ v2: one, v3: other, v2Count: 1, v3Count: 1 })
  return { pairs, v2Only: [], v3Only: [], isInOrder }
}

function positionsOf(list: readonly unknown[]): Map<string, number[]> {
  const positions = new Map<string, number[]>()
  for (const [at, value] of list.entries()) {
    const id = isMembers(value) ? idOf(memberOf(value, 'ExternalID')) : undefined
    const key = id ?? `content ${contentKey(value)}`
    const same = positions.get(key)
    if (same === undefined) positions.set(key, [at])
    else same.push(at)
  }
  return positions
}

const hasId = (value: unknown): boolean =>
  isMembers(value) && idOf(memberOf(value, 'ExternalID')) !== undefined
