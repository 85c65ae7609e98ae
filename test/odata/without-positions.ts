/** Copies a syntax tree without its `position` members, in order to compare trees that come from different texts. */
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
