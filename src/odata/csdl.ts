/** The primitive types of OData 4.01 that this module supports, each with the family of its values. */
export const primitiveFamilies = {
  'Edm.Binary': 'binary',
  'Edm.Boolean': 'boolean',
  'Edm.Byte': 'number',
  'Edm.Date': 'date',
  'Edm.DateTimeOffset': 'instant',
  'Edm.Decimal': 'number',
  'Edm.Double': 'number',
  'Edm.Duration': 'duration',
  'Edm.Guid': 'guid',
  'Edm.Int16': 'number',
  'Edm.Int32': 'number',
  'Edm.Int64': 'number',
  'Edm.SByte': 'number',
  'Edm.Single': 'number',
  'Edm.String': 'string',
  'Edm.TimeOfDay': 'timeOfDay',
} as const

export type PrimitiveType = keyof typeof primitiveFamilies

/** A reference to a primitive type by its name, or to a declared type by its qualified name, or to a collection of the type. */
export interface TypeRef {
  readonly type: string
  readonly collection: boolean
}

export interface Property extends TypeRef {
  readonly name: string
  /** True if the value may be null. For a collection, true if its items may be null. */
  readonly nullable: boolean
  readonly scale?: 'variable'
}

/** A property that links to other entities, which `$expand` includes in the reply. */
export interface NavigationProperty extends TypeRef {
  readonly name: string
  /** True if the target may be absent. Ignored if the property is a collection. */
  readonly nullable: boolean
  /** True if the target has no entity set of its own and exists only within its owner (ContainsTarget in CSDL). */
  readonly contained: boolean
}

export interface EnumMember {
  readonly name: string
  readonly value: number
}

export interface EnumType {
  readonly name: string
  readonly members: readonly EnumMember[]
}

export interface ComplexType {
  readonly name: string
  readonly properties: readonly Property[]
  readonly navigation: readonly NavigationProperty[]
}

export interface EntityType extends ComplexType {
  /** The names of the key properties. Never empty, and no key property is nullable. */
  readonly key: readonly string[]
}

export interface Parameter extends TypeRef {
  readonly name: string
  readonly nullable: boolean
}

/** The declaration of a function. The first parameter of a bound function is the binding parameter. */
export interface FunctionDeclaration {
  readonly name: string
  readonly bound: boolean
  readonly parameters: readonly Parameter[]
  readonly returns: TypeRef & { readonly nullable: boolean }
}

/** A namespace of types. Declarations have names without a namespace. References to types always have names with a namespace. */
export interface Schema {
  readonly namespace: string
  readonly alias?: string
  readonly enumTypes: readonly EnumType[]
  readonly complexTypes: readonly ComplexType[]
  readonly entityTypes: readonly EntityType[]
  readonly functions: readonly FunctionDeclaration[]
}

export interface EntitySet {
  readonly name: string
  readonly entityType: string
}

/** The model of a service, which `$metadata` shows and against which queries are checked. */
export interface ServiceModel {
  readonly schemas: readonly Schema[]
  readonly container: {
    readonly namespace: string
    readonly name: string
    readonly entitySets: readonly EntitySet[]
  }
}
