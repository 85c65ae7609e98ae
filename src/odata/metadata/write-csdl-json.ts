import type {
  ComplexType,
  EntityType,
  EnumType,
  FunctionDeclaration,
  NavigationProperty,
  Property,
  Schema,
  ServiceModel,
  TypeRef,
} from '../csdl.ts'
import { bindingsOf } from './write-edmx.ts'

/** The service document of OData JSON 4.0, section 5. */
interface ServiceDocument {
  readonly '@odata.context': string
  readonly value: readonly { readonly name: string; readonly kind: 'EntitySet'; readonly url: string }[]
}

/** Lists the entity sets of a model; `metadataUrl` is the absolute address of its `$metadata`. */
export function toServiceDocument(model: ServiceModel, metadataUrl: string): ServiceDocument {
  return {
    '@odata.context': metadataUrl,
    value: model.container.entitySets.map(({ name }) => ({ name, kind: 'EntitySet', url: name })),
  }
}

type Members = Readonly<Record<string, unknown>>

/** Unlike in XML, `$Nullable` is false where it is not written, and the type of a property is Edm.String. */
const typeOf = ({ type, collection }: TypeRef): Members => ({
  ...(collection ? { $Collection: true } : {}),
  ...(type === 'Edm.String' ? {} : { $Type: type }),
})
const nullable = (isNullable: boolean): Members => (isNullable ? { $Nullable: true } : {})

function toProperty(property: Property): Members {
  // Without $Scale a decimal has any number of digits in JSON, and none in XML (CSDL JSON 7.2.4, CSDL XML 7.2.4).
  const scale = property.scale ?? (property.type === 'Edm.Decimal' ? 0 : undefined)
  return {
    ...typeOf(property),
    ...nullable(property.nullable),
    ...(scale === undefined ? {} : { $Scale: scale }),
  }
}

/** A collection is never null, so `$Nullable` must not be written for one (CSDL JSON 8.4). */
const toNavigation = (property: NavigationProperty): Members => ({
  $Kind: 'NavigationProperty',
  ...typeOf(property),
  ...(property.collection ? {} : nullable(property.nullable)),
  ...(property.contained ? { $ContainsTarget: true } : {}),
})

const toMembers = (type: ComplexType): Members => ({
  ...Object.fromEntries(type.properties.map((property) => [property.name, toProperty(property)])),
  ...Object.fromEntries(type.navigation.map((property) => [property.name, toNavigation(property)])),
})

const toEntityType = (type: EntityType): Members => ({
  $Kind: 'EntityType',
  $Key: type.key,
  ...toMembers(type),
})

const toEnumType = ({ flags, members }: EnumType): Members => ({
  $Kind: 'EnumType',
  ...(flags ? { $IsFlags: true } : {}),
  ...Object.fromEntries(members.map(({ name, value }) => [name, value])),
})

function toFunction({ bound, parameters, returns }: FunctionDeclaration): Members {
  const facets = (value: TypeRef & { readonly nullable: boolean }): Members => ({
    ...typeOf(value),
    ...(value.collection ? {} : nullable(value.nullable)),
  })
  return {
    $Kind: 'Function',
    ...(bound ? { $IsBound: true } : {}),
    $Parameter: parameters.map((parameter) => ({ $Name: parameter.name, ...facets(parameter) })),
    $ReturnType: facets(returns),
  }
}

function toContainer(model: ServiceModel): Members {
  const sets = model.container.entitySets.map((set) => {
    const bindings = bindingsOf(set, model).map(({ path, target }) => [path, target] as const)
    const bound = bindings.length === 0 ? {} : { $NavigationPropertyBinding: Object.fromEntries(bindings) }
    return [set.name, { $Collection: true, $Type: set.entityType, ...bound }] as const
  })
  return { $Kind: 'EntityContainer', ...Object.fromEntries(sets) }
}

function toSchema(schema: Schema, model: ServiceModel): Members {
  const { container } = model
  // Overloads are grouped under their name (CSDL JSON 12.3).
  const functions = Map.groupBy(schema.functions, ({ name }) => name)
  const hasContainer = schema.namespace === container.namespace
  return {
    ...(schema.alias === undefined ? {} : { $Alias: schema.alias }),
    ...Object.fromEntries(schema.enumTypes.map((type) => [type.name, toEnumType(type)])),
    ...Object.fromEntries(
      schema.complexTypes.map((type) => [type.name, { $Kind: 'ComplexType', ...toMembers(type) }]),
    ),
    ...Object.fromEntries(schema.entityTypes.map((type) => [type.name, toEntityType(type)])),
    ...Object.fromEntries([...functions].map(([name, overloads]) => [name, overloads.map(toFunction)])),
    ...(hasContainer ? { [container.name]: toContainer(model) } : {}),
  }
}

/** Writes a model as a CSDL JSON document (`$metadata`; media type `application/json`). */
export function writeCsdlJson(model: ServiceModel): string {
  const { namespace, name } = model.container
  return JSON.stringify({
    $Version: '4.0',
    $EntityContainer: `${namespace}.${name}`,
    ...Object.fromEntries(model.schemas.map((schema) => [schema.namespace, toSchema(schema, model)])),
  })
}
