/** The system query options that this layer reads, without `$`. */
export const systemOptions = [
  'filter',
  'expand',
  'select',
  'orderby',
  'compute',
  'search',
  'top',
  'skip',
  'count',
  'levels',
  'skiptoken',
  'deltatoken',
  'format',
  'schemaversion',
  'index',
] as const

export type SystemOption = (typeof systemOptions)[number]

/** The options that are possible in parentheses: system options and parameter aliases. */
export type OptionName = SystemOption | 'alias'

const byName: ReadonlyMap<string, SystemOption> = new Map(systemOptions.map((name) => [name, name]))

/** ABNF skiptoken and deltatoken: written by the service itself, so never without `$`. */
const dollarOnly: ReadonlySet<string> = new Set(['skiptoken', 'deltatoken'])

/** The system option that a name means, in any case and with or without `$` (OData 4.01 protocol 11.2.1). */
export function findSystemOption(name: string): SystemOption | undefined {
  const lower = name.toLowerCase()
  if (lower.startsWith('$')) return byName.get(lower.slice(1))
  return dollarOnly.has(lower) ? undefined : byName.get(lower)
}

/** How errors name an option: with `$` in the usual case where it is a system option, else as it was given. */
export function nameOption(name: string): string {
  const system = findSystemOption(name)
  // No longer than a name may be: a reply repeats it.
  return system === undefined ? name.slice(0, 128) : `$${system}`
}
