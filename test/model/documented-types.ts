import { expect } from 'vitest'
import { documentedFields } from './documented-fields.ts'

const edmNames: Readonly<Record<string, string>> = {
  guid: 'Edm.Guid',
  string: 'Edm.String',
  int32: 'Edm.Int32',
  bool: 'Edm.Boolean',
  datetimeoffset: 'Edm.DateTimeOffset',
  duration: 'Edm.Duration',
  decimal: 'Edm.Decimal',
}

/** The shape of every field of a type, such as `Edm.Guid required` or `nav Collection(Svc.PreviousName)`. */
export type FieldTable = Readonly<Record<string, string>>

/** Matches one entry of the notation: `nav? A, B type-or-[type] (required|contained)?`. */
const entryPattern = /^(nav )?([\w, ]+?) (\[?)(\w+)\]?(?: \((required|contained)\))?$/

function readEntry(entry: string): readonly (readonly [name: string, shape: string])[] {
  const [, nav = '', names = '', bracket, type = '', mark] = entryPattern.exec(entry) ?? []
  expect(names, `cannot read "${entry}"`).not.toBe('')
  const qualified = edmNames[type] ?? `Svc.${type}`
  const shape = bracket === '[' ? `Collection(${qualified})` : qualified
  const navigation = nav === '' ? '' : mark === 'contained' ? 'contained ' : 'nav '
  return names
    .split(', ')
    .map((name) => [name, `${navigation}${shape}${mark === 'required' ? ' required' : ''}`])
}

function readTable(table: string): ReadonlyMap<string, FieldTable> {
  const lines = table
    .trim()
    .replace(/\n {2}/g, ' ')
    .split('\n')
  return new Map(
    lines.flatMap((line) => {
      const [names = '', fields = ''] = line.split(': ')
      const declared = Object.fromEntries(fields.split('; ').flatMap(readEntry))
      return names.split(', ').map((name) => [name, declared] as const)
    }),
  )
}

/** Every type that service.md shows, by name. */
export const documentedTypes = readTable(documentedFields)
