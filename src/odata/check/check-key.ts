import type { KeyPart } from '../ast.ts'
import { QueryError } from '../query-error.ts'
import type { ModelIndex } from '../typed/model-index.ts'
import type { ConstantNode } from '../typed/typed-ast.ts'
import { comparable } from './check-comparison.ts'
import { checkExpression, type CheckSettings } from './check-expression.ts'

/**
 * Checks a key predicate against an entity type: one unnamed value for a key of one property, otherwise every key
 * property once, each with a value of its type.
 *
 * @returns the key's values by property, in the order of the declaration
 * @throws QueryError (`ADP_QUERY`, 400) with the character position
 */
export function checkKey(
  parts: readonly KeyPart[],
  typeName: string,
  index: ModelIndex,
  settings: CheckSettings = {},
): ReadonlyMap<string, ConstantNode> {
  const type = index.structured(typeName)
  const values = new Map<string, ConstantNode>()
  for (const { name = type.key.length === 1 ? type.key[0] : undefined, value, position } of parts) {
    if (name === undefined || !type.key.includes(name)) {
      throw new QueryError(`The key of ${type.name} is ${type.key.join(', ')}`, position)
    }
    if (values.has(name)) throw new QueryError(`${name} is given twice`, position)
    const expression = value.kind === 'alias' ? settings.aliases?.get(value.name) : value
    if (expression === undefined) throw new QueryError('The alias has no value', position)
    const property = checkExpression(
      { kind: 'path', root: { kind: 'member' }, segments: [{ kind: 'property', name, position }], position },
      typeName,
      index,
    )
    const [, constant] = comparable(
      property,
      checkExpression(expression, typeName, index, settings),
      index,
      false,
    )
    if (constant.kind !== 'constant' || constant.value === null) {
      throw new QueryError('Expected a literal', position)
    }
    values.set(name, constant)
  }
  const missing = type.key.filter((name) => !values.has(name))
  if (missing.length > 0) throw new QueryError(`The key also needs ${missing.join(', ')}`, 0)
  return new Map(type.key.flatMap((name) => [...values].filter(([given]) => given === name)))
}
