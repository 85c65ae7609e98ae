/** A built-in function of OData 4.01: how it is spelled, and how many arguments it takes. */
export interface BuiltInFunction {
  /** Canonical spelling; calls may use any case. */
  readonly name: string
  readonly minArguments: number
  readonly maxArguments: number
}

const counts: Readonly<Record<string, readonly [min: number, max: number]>> = {
  concat: [2, 2],
  contains: [2, 2],
  endswith: [2, 2],
  indexof: [2, 2],
  length: [1, 1],
  matchesPattern: [2, 2],
  startswith: [2, 2],
  substring: [2, 3],
  tolower: [1, 1],
  toupper: [1, 1],
  trim: [1, 1],
  hassubset: [2, 2],
  hassubsequence: [2, 2],
  year: [1, 1],
  month: [1, 1],
  day: [1, 1],
  hour: [1, 1],
  minute: [1, 1],
  second: [1, 1],
  fractionalseconds: [1, 1],
  totalseconds: [1, 1],
  date: [1, 1],
  time: [1, 1],
  totaloffsetminutes: [1, 1],
  mindatetime: [0, 0],
  maxdatetime: [0, 0],
  now: [0, 0],
  round: [1, 1],
  floor: [1, 1],
  ceiling: [1, 1],
}

const byLowerCase: ReadonlyMap<string, BuiltInFunction> = new Map(
  Object.entries(counts).map(([name, [minArguments, maxArguments]]) => [
    name.toLowerCase(),
    { name, minArguments, maxArguments },
  ]),
)

/** The built-in function of this name in any case (OData URL conventions 5.1.1.4 ff.); spatial functions are left out. */
export function findFunction(name: string): BuiltInFunction | undefined {
  return byLowerCase.get(name) ?? byLowerCase.get(name.toLowerCase())
}
