/** A copy of a syntax tree without the `position` members, for comparing trees that were read from different texts. */
export function withoutPositions(node: unknown): unknown {
  if (node instanceof Map) return new Map([...node].map(([key, value]) => [key, withoutPositions(value)]))
  if (Array.isArray(node)) return node.map(withoutPositions)
  if (typeof node !== 'object' || node === null) return node
  return Object.fromEntries(
    Object.entries(node)
      .filter(([name]) => name !== 'position')
      .map(([name, value]) => [name, withoutPositions(value)]),
  )
}
