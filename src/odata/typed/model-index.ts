import { AdapterError } from '../../errors.ts'
import {
  type ComplexType,
  type EntityType,
  type NavigationProperty,
  type PrimitiveType,
  primitiveFamilies,
  type Property,
  type ServiceModel,
  type TypeRef,
} from '../csdl.ts'
import { primitive, type ValueType } from './scalar.ts'

export interface StructuredType {
  readonly kind: 'entity' | 'complex'
  readonly name: string
  readonly properties: ReadonlyMap<string, Property>
  readonly navigation: ReadonlyMap<string, NavigationProperty>
  /** Names of the key properties. Empty for a complex type. */
  readonly key: readonly string[]
}

export interface EnumTypeInfo {
  readonly kind: 'enum'
  readonly name: string
  readonly valueByMember: ReadonlyMap<string, number>
}

export interface PrimitiveTypeInfo {
  readonly kind: 'primitive'
  readonly name: PrimitiveType
}

export type TypeInfo = StructuredType | EnumTypeInfo | PrimitiveTypeInfo

export interface ModelIndex {
  /** Finds a type by its name with a namespace or an alias, or by its name alone if this name is unique. */
  findType(name: string): TypeInfo | undefined
  /** Returns the structured type with this name. Throws `ADP_INTERNAL` if the model does not declare the type. */
  structured(name: string): StructuredType
  valueType(ref: TypeRef): ValueType
}

function toStructured(
  kind: 'entity' | 'complex',
  name: string,
  declaration: ComplexType | EntityType,
): StructuredType {
  return {
    kind,
    name,
    properties: new Map(declaration.properties.map((property) => [property.name, property])),
    navigation: new Map(declaration.navigation.map((property) => [property.name, property])),
    key: 'key' in declaration ? declaration.key : [],
  }
}

function indexTypes(model: ServiceModel): ReadonlyMap<string, TypeInfo> {
  const types = new Map<string, TypeInfo>()
  for (const name of Object.keys(primitiveFamilies) as PrimitiveType[])
    types.set(name, { kind: 'primitive', name })
  const bare = new Map<string, TypeInfo | undefined>()
  const add = (namespace: string, alias: string | undefined, name: string, info: TypeInfo): void => {
    types.set(`${namespace}.${name}`, info)
    if (alias !== undefined) types.set(`${alias}.${name}`, info)
    bare.set(name, bare.has(name) ? undefined : info)
  }
  for (const { namespace, alias, entityTypes, complexTypes, enumTypes } of model.schemas) {
    for (const type of entityTypes)
      add(namespace, alias, type.name, toStructured('entity', `${namespace}.${type.name}`, type))
    for (const type of complexTypes)
      add(namespace, alias, type.name, toStructured('complex', `${namespace}.${type.name}`, type))
    for (const declaration of enumTypes) {
      const valueByMember = new Map(declaration.members.map(({ name, value }) => [name, value]))
      const name = `${namespace}.${declaration.name}`
      add(namespace, alias, declaration.name, { kind: 'enum', name, valueByMember })
    }
  }
  for (const [name, info] of bare) if (info !== undefined) types.set(name, info)
  return types
}

/** Creates an index of the types of a model, which any number of checks can share. */
export function createModelIndex(model: ServiceModel): ModelIndex {
  const types = indexTypes(model)
  return {
    findType: (name) => types.get(name),
    structured(name) {
      const type = types.get(name)
      if (type?.kind === 'entity' || type?.kind === 'complex') return type
      throw new AdapterError('ADP_INTERNAL', `The model has no structured type ${name}`)
    },
    valueType({ type: name, collection }) {
      const type = types.get(name)
      if (type?.kind === 'primitive') return { ...primitive(type.name), collection }
      return { family: type?.kind === 'enum' ? 'enum' : 'structured', name: type?.name ?? name, collection }
    },
  }
}
