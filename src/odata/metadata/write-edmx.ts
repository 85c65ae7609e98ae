import type {
  ComplexType,
  EntitySet,
  EntityType,
  EnumType,
  FunctionDeclaration,
  NavigationProperty,
  Property,
  Schema,
  ServiceModel,
  TypeRef,
} from '../csdl.ts'

/**
 * Returns the bindings of an entity set. A navigation property is bound if it is not contained and exactly one entity set has its target
 * type.
 */
function bindingsOf(set: EntitySet, model: ServiceModel) {
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

type Attributes = Readonly<Record<string, string | undefined>>

const escapes: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '"': '&quot;' }

const escape = (text: string): string =>
  text.replace(/[&<"]/g, (character) => escapes[character] ?? character)

function element(name: string, attributes: Attributes, children: readonly string[] = []): string {
  const given = Object.entries(attributes).flatMap(([key, value]) =>
    value === undefined ? [] : [` ${key}="${escape(value)}"`],
  )
  const start = `<${name}${given.join('')}`
  if (children.length === 0) return `${start}/>`
  const indented = children.join('\n').replace(/^/gm, '  ')
  return `${start}>\n${indented}\n</${name}>`
}

const typeName = ({ type, collection }: TypeRef): string => (collection ? `Collection(${type})` : type)

const nullableFacet = (nullable: boolean): string | undefined => (nullable ? undefined : 'false')

const writeProperty = (property: Property): string =>
  element('Property', {
    Name: property.name,
    Type: typeName(property),
    Nullable: nullableFacet(property.nullable),
    Scale: property.scale,
  })

/** Writes a navigation property. A collection is never null, so its `Nullable` attribute is omitted (CSDL XML 8.4). */
const writeNavigation = (property: NavigationProperty): string =>
  element('NavigationProperty', {
    Name: property.name,
    Type: typeName(property),
    Nullable: property.collection ? undefined : nullableFacet(property.nullable),
    ContainsTarget: property.contained ? 'true' : undefined,
  })

const writeMembers = (type: ComplexType): readonly string[] => [
  ...type.properties.map(writeProperty),
  ...type.navigation.map(writeNavigation),
]

const writeComplexType = (type: ComplexType): string =>
  element('ComplexType', { Name: type.name }, writeMembers(type))

function writeEntityType(type: EntityType): string {
  const references = type.key.map((name) => element('PropertyRef', { Name: name }))
  return element('EntityType', { Name: type.name }, [element('Key', {}, references), ...writeMembers(type)])
}

function writeEnumType(type: EnumType): string {
  const members = type.members.map(({ name, value }) =>
    element('Member', { Name: name, Value: String(value) }),
  )
  return element('EnumType', { Name: type.name }, members)
}

function writeFunction(declaration: FunctionDeclaration): string {
  const facets = (value: TypeRef & { readonly nullable: boolean }): Attributes => ({
    Type: typeName(value),
    Nullable: value.collection ? undefined : nullableFacet(value.nullable),
  })
  return element('Function', { Name: declaration.name, IsBound: declaration.bound ? 'true' : undefined }, [
    ...declaration.parameters.map((parameter) =>
      element('Parameter', { Name: parameter.name, ...facets(parameter) }),
    ),
    element('ReturnType', facets(declaration.returns)),
  ])
}

function writeEntitySet(set: EntitySet, model: ServiceModel): string {
  const bindings = bindingsOf(set, model).map(({ path, target }) =>
    element('NavigationPropertyBinding', { Path: path, Target: target }),
  )
  return element('EntitySet', { Name: set.name, EntityType: set.entityType }, bindings)
}

function writeSchema(schema: Schema, model: ServiceModel): string {
  const { container } = model
  const sets = container.entitySets.map((set) => writeEntitySet(set, model))
  const attributes = {
    Namespace: schema.namespace,
    Alias: schema.alias,
    xmlns: 'http://docs.oasis-open.org/odata/ns/edm',
  }
  return element('Schema', attributes, [
    ...schema.enumTypes.map(writeEnumType),
    ...schema.complexTypes.map(writeComplexType),
    ...schema.entityTypes.map(writeEntityType),
    ...schema.functions.map(writeFunction),
    ...(schema.namespace === container.namespace
      ? [element('EntityContainer', { Name: container.name }, sets)]
      : []),
  ])
}

/** Returns the `$metadata` of a model as an OData 4.0 EDMX document with the media type `application/xml`. */
export function writeEdmx(model: ServiceModel): string {
  const services = element(
    'edmx:DataServices',
    {},
    model.schemas.map((schema) => writeSchema(schema, model)),
  )
  const attributes = { Version: '4.0', 'xmlns:edmx': 'http://docs.oasis-open.org/odata/ns/edmx' }
  return `<?xml version="1.0" encoding="utf-8"?>\n${element('edmx:Edmx', attributes, [services])}\n`
}

/** Returns the service document, which lists the entity sets of a model (OData JSON 4.0, 5). `metadataUrl` is an absolute URL. */
export function toServiceDocument(model: ServiceModel, metadataUrl: string) {
  return {
    '@odata.context': metadataUrl,
    value: model.container.entitySets.map(({ name }) => ({ name, kind: 'EntitySet', url: name })),
  }
}
