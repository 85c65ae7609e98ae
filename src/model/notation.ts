import type {
  ComplexType,
  EntityType,
  NavigationProperty,
  PrimitiveType,
  Property,
  TypeRef,
} from '../odata/csdl.ts'

/** The namespace of the types that the service declares (service.md 2). */
export const serviceNamespace = 'Svc'

/** A field without its name. It is a navigation property if `navigation` is set, and otherwise a structural property. */
export interface Field extends TypeRef {
  readonly nullable: boolean
  readonly scale?: 'variable'
  readonly navigation?: 'plain' | 'contained'
}

type Fields = Readonly<Record<string, Field>>

const primitive = (type: PrimitiveType): Field => ({ type, collection: false, nullable: true })

const qualified = (name: string): string => (name.includes('.') ? name : `${serviceNamespace}.${name}`)

export const guid = primitive('Edm.Guid')
export const string = primitive('Edm.String')
export const int32 = primitive('Edm.Int32')
export const bool = primitive('Edm.Boolean')
export const datetimeoffset = primitive('Edm.DateTimeOffset')
export const duration = primitive('Edm.Duration')
export const decimal: Field = { ...primitive('Edm.Decimal'), scale: 'variable' }

/** Declares a field for a collection of strings, which service.md writes as `[string]`. */
export const strings: Field = { type: 'Edm.String', collection: true, nullable: false }

/** Declares a field of a complex or enumeration type. A type name without a dot belongs to `serviceNamespace`. */
export const ref = (typeName: string): Field => ({
  type: qualified(typeName),
  collection: false,
  nullable: true,
})

/** Declares a field for a collection of complex values, which service.md writes as `[T]`. */
export const collectionOf = (typeName: string): Field => ({
  type: qualified(typeName),
  collection: true,
  nullable: false,
})

/** Declares a navigation property to a collection, which service.md writes as `nav X [T]`. */
export const nav = (typeName: string): Field => ({ ...collectionOf(typeName), navigation: 'plain' })

/** Declares a navigation property to one entity, which service.md writes as `nav X T (single)`. */
export const navOne = (typeName: string): Field => ({ ...ref(typeName), navigation: 'plain' })

/** Declares a navigation property to a contained collection, which service.md writes as `nav X [T] (contained)`. */
export const contained = (typeName: string): Field => ({
  ...collectionOf(typeName),
  navigation: 'contained',
})

export const required = (field: Field): Field => ({ ...field, nullable: false })

function split(fields: Fields): {
  readonly properties: readonly Property[]
  readonly navigation: readonly NavigationProperty[]
} {
  const properties: Property[] = []
  const navigation: NavigationProperty[] = []
  for (const [name, { navigation: link, scale, ...rest }] of Object.entries(fields)) {
    if (link === undefined) properties.push({ name, ...rest, ...(scale === undefined ? {} : { scale }) })
    else navigation.push({ name, ...rest, contained: link === 'contained' })
  }
  return { properties, navigation }
}

export const complex = (name: string, fields: Fields): ComplexType => ({ name, ...split(fields) })

/** Declares an entity type whose key is ExternalID (service.md 2). ExternalID is added as the first field. */
export const entity = (name: string, fields: Fields): EntityType =>
  keyedEntity(name, ['ExternalID'], { ExternalID: required(guid), ...fields })

export const keyedEntity = (name: string, key: readonly string[], fields: Fields): EntityType => ({
  name,
  key,
  ...split(fields),
})
