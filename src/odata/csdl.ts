/** The primitive types of OData 4.01 that this layer reads, compares and writes, each with the family of its values. */
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

/** The type of a value: a primitive type or the qualified name of a declared type, alone or as a collection of it. */
export interface TypeRef {
  readonly type: string
  readonly collection: boolean
}

/** A structural property: primitive, enumeration or complex. */
export interface Property extends TypeRef {
  readonly name: string
  /** For a collection: whether its items may be null. */
  readonly nullable: boolean
  /** Digits after the point of an Edm.Decimal. */
  readonly scale?: 'variable'
}

/** A link to other entities, expandable with `$expand`. */
export interface NavigationProperty extends TypeRef {
  readonly name: string
  /** Meaningful for a single target only. */
  readonly nullable: boolean
  /** True where the target has no entity set of its own and lives in its owner (CSDL ContainsTarget). */
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
  /** Names of non-nullable properties, at least one. */
  readonly key: readonly string[]
}

export interface Parameter extends TypeRef {
  readonly name: string
  readonly nullable: boolean
}

/** A function; where bound, the first parameter is the binding parameter. */
export interface FunctionDeclaration {
  readonly name: string
  readonly bound: boolean
  readonly parameters: readonly Parameter[]
  readonly returns: TypeRef & { readonly nullable: boolean }
}

/** One namespace of types. Type names inside are unqualified; references to types are always qualified. */
export interface Schema {
  readonly namespace: string
  /** A second name of the namespace that clients may use. */
  readonly alias?: string
  readonly enumTypes: readonly EnumType[]
  readonly complexTypes: readonly ComplexType[]
  readonly entityTypes: readonly EntityType[]
  readonly functions: readonly FunctionDeclaration[]
}

export interface EntitySet {
  readonly name: string
  /** Qualified name of the entity type. */
  readonly entityType: string
}

/** A whole service as data: the content of `$metadata`, and the model that queries are checked against. */
export interface ServiceModel {
  readonly schemas: readonly Schema[]
  readonly container: {
    readonly namespace: string
    readonly name: string
    readonly entitySets: readonly EntitySet[]
  }
}
