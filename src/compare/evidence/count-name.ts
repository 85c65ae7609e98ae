import type { CheckKind } from '../compared-exchange.ts'

/** Bits of the checks in hashes of learners and days. */
export const checkBits: Readonly<Record<CheckKind, number>> = {
  reply: 0,
  visible: 1,
  readBack: 2,
  answers: 3,
}

/**
 * Names of counts. `exchange <kind> <check> compared|missed` and `schoolDay <day> <check>` count requests, all others records:
 * `verdict <kind> <check> <verdict>`, `difference <path> <kind> <class of V2> <class of V3>`, `rule <rule> <path>`,
 * `codeClass <class> <verdict>`, `comparedOn <day> <verdict>`, `code <check> <fingerprint> compared|seen`, `error <check> <code> compared|seen`,
 * `trait <check> <trait>`, `delay <ms>`, `uncounted <reason> [differs]`.
 */
export type CountGroup =
  | 'exchange'
  | 'schoolDay'
  | 'verdict'
  | 'difference'
  | 'rule'
  | 'codeClass'
  | 'comparedOn'
  | 'code'
  | 'error'
  | 'trait'
  | 'delay'
  | 'uncounted'

const MAX_FIELD = 120

/** The name of a count. Fields that are longer than a name of this program's is become `other`. */
export function countName(group: CountGroup, ...fields: readonly string[]): string {
  return [
    group,
    ...fields.map((field) => (field.length > MAX_FIELD ? 'other' : encodeURIComponent(field))),
  ].join(' ')
}

/** The counts of a group by their fields; a name that cannot be read is left out. */
export function countsOf(
  counts: ReadonlyMap<string, number>,
  group: CountGroup,
): readonly { readonly fields: readonly string[]; readonly count: number }[] {
  return [...counts].flatMap(([name, count]) => {
    const [first, ...fields] = name.split(' ')
    const decoded = fields.map(decode)
    return first === group && decoded.every((field) => field !== undefined)
      ? [{ fields: decoded, count }]
      : []
  })
}

function decode(field: string): string | undefined {
  try {
    return decodeURIComponent(field)
  } catch {
    return undefined
  }
}
