import type { PrimitiveType } from '../csdl.ts'

/** How values behave: two types of one family compare with each other. */
export type Family =
  | 'null'
  | 'boolean'
  | 'number'
  | 'string'
  | 'guid'
  | 'binary'
  | 'enum'
  | 'instant'
  | 'date'
  | 'timeOfDay'
  | 'duration'
  | 'structured'

/** The type of an expression: one value, or a collection of such values. */
export interface ValueType {
  readonly family: Family
  /** `Edm.Int32`, the qualified name of a declared type, or `null`. */
  readonly name: string
  readonly collection: boolean
}

const families: Readonly<Record<PrimitiveType, Family>> = {
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
}

/** The single-valued type of a primitive. */
export const primitive = (name: PrimitiveType): ValueType => ({
  family: families[name],
  name,
  collection: false,
})

/** The type of the `null` literal, which fits everywhere. */
export const nullType: ValueType = { family: 'null', name: 'null', collection: false }

const integers: ReadonlySet<string> = new Set([
  'Edm.Byte',
  'Edm.SByte',
  'Edm.Int16',
  'Edm.Int32',
  'Edm.Int64',
])

/** Whether `div` of values of this type is a whole number. */
export const isInteger = (type: ValueType): boolean => integers.has(type.name)
