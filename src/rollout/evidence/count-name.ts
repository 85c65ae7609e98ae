import { createHash } from 'node:crypto'

/**
 * The groups of counts, with the fields of their names. `exchange <kind> <check> compared|missed` and `schoolDay <day> <check>` count
 * requests, `learned <what>` counts exchanges, `batch <side>` and `unreadable` count writes. All other groups count records: `verdict
 * <kind> <check> <verdict>`, `unchecked <kind> <check>`, `difference <path> <kind> <class of V2> <class of V3>`, `rule <rule> <path>`,
 * `codeClass <class> <verdict>`, `comparedOn <day> <verdict>`, `comparedAt <hour> <verdict>`, `code <check> <fingerprint>
 * compared|seen|unchecked`, `trait <check> <trait>`, `delay <ms>`, `uncounted <reason> [differs]`, `written <side> <fingerprint of the
 * code>`.
 */
type CountGroup =
  | 'exchange'
  | 'schoolDay'
  | 'learned'
  | 'batch'
  | 'unreadable'
  | 'verdict'
  | 'difference'
  | 'rule'
  | 'codeClass'
  | 'comparedOn'
  | 'comparedAt'
  | 'code'
  | 'unchecked'
  | 'trait'
  | 'delay'
  | 'uncounted'
  | 'written'

export type Counts = ReadonlyMap<string, number>

/** Maximum length of a field in characters. Only a field from outside the program, such as a path, can be longer. */
const MAX_FIELD = 400

/** Returns the name of a count. A field that is too long becomes `other`. */
export function countName(group: CountGroup, ...fields: readonly string[]): string {
  return [
    group,
    ...fields.map((field) => (field.length > MAX_FIELD ? 'other' : encodeURIComponent(field))),
  ].join(' ')
}

export function addCounts(target: Map<string, number>, added: Iterable<readonly [string, number]>): void {
  for (const [name, count] of added) target.set(name, (target.get(name) ?? 0) + count)
}

/** Returns the counts of a group. Names that cannot be decoded are left out. */
export function countsOf(
  counts: Counts,
  group: CountGroup,
): readonly { readonly fields: readonly string[]; readonly count: number }[] {
  return [...counts].flatMap(([name, count]) => {
    const [first, ...fields] = name.split(' ')
    const decoded = first === group ? fields.map(decode) : [undefined]
    return decoded.every((field) => field !== undefined) ? [{ fields: decoded, count }] : []
  })
}

function decode(field: string): string | undefined {
  try {
    return decodeURIComponent(field)
  } catch {
    return undefined
  }
}

const NO_CODE = '00000000-0000-0000-0000-000000000000'
const MAX_CODE_LENGTH = 40

/** Returns a fingerprint of an attendance code that ignores case, or `undefined` if the text is not a code. */
export function codeFingerprint(code: string): string | undefined {
  if (code === '' || code === NO_CODE || code.length > MAX_CODE_LENGTH) return undefined
  return createHash('sha256').update(code.toLowerCase()).digest('base64url').slice(0, 12)
}
