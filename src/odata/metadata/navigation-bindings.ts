import type { EntitySet, ServiceModel } from '../csdl.ts'

/** A navigation property of a set's type, and the set that its entities are in. */
export interface NavigationBinding {
  readonly path: string
  readonly target: string
}

/** Links lead to the one set of their target type; contained targets and types without a set of their own have none. */
export function bindingsOf(set: EntitySet, model: ServiceModel): readonly NavigationBinding[] {
  const { entitySets } = model.container
  const type = model.schemas
    .flatMap(({ namespace, entityTypes }) => entityTypes.map((declared) => ({ namespace, declared })))
    .find(({ namespace, declared }) => `${namespace}.${declared.name}` === set.entityType)
  return (type?.declared.navigation ?? []).flatMap((property) => {
    const targets = entitySets.filter(({ entityType }) => entityType === property.type)
    const [target] = targets
    if (property.contained || target === undefined || targets.length > 1) return []
    return [{ path: property.name, target: target.name }]
  })
}
