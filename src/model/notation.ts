import type {
  ComplexType,
  EntityType,
  NavigationProperty,
  PrimitiveType,
  Property,
  TypeRef,
} from '../odata/csdl.ts'

/** Namespace of the service's own types (service.md 2). */
export const serviceNamespace = 'Svc'

/** A field before it has a name: a structural property, or a navigation property marked by `navigation`. */
export interface Field extends TypeRef {
  readonly nullable: boolean
  readonly scale?: number | 'variable'
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

/** `[string]`: a collection of strings. */
export const strings: Field = { type: 'Edm.String', collection: true, nullable: false }

/** A complex or enumeration value; a name without a dot is one of `serviceNamespace`. */
export const ref = (typeName: string): Field => ({
  type: qualified(typeName),
  collection: false,
  nullable: true,
})

/** `[T]`: a collection of complex values. */
export const collectionOf = (typeName: string): Field => ({
  type: qualified(typeName),
  collection: true,
  nullable: false,
})

/** `nav X [T]`: a plain navigation collection. */
export const nav = (typeName: string): Field => ({ ...collectionOf(typeName), navigation: 'plain' })

/** `nav X T (single)`. */
export const navOne = (typeName: string): Field => ({ ...ref(typeName), navigation: 'plain' })

/** `nav X [T] (contained)`. */
export const contained = (typeName: string): Field => ({
  ...collectionOf(typeName),
  navigation: 'contained',
})

/** The same field, required. */
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

/** A complex type from its fields, in the order they are given. */
export const complex = (name: string, fields: Fields): ComplexType => ({ name, ...split(fields) })

/** An entity type keyed by ExternalID, which is added first (service.md 2). */
export const entity = (name: string, fields: Fields): EntityType =>
  keyedEntity(name, ['ExternalID'], { ExternalID: required(guid), ...fields })

/** An entity type with a key of its own. */
export const keyedEntity = (name: string, key: readonly string[], fields: Fields): EntityType => ({
  name,
  key,
  ...split(fields),
})
