/** Returns the middle value, or the mean of the two middle values if the number of values is even. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((one, other) => one - other)
  const middle = sorted.length / 2
  const high = sorted[Math.floor(middle)] ?? Number.NaN
  return Number.isInteger(middle) ? ((sorted[middle - 1] ?? Number.NaN) + high) / 2 : high
}

/**
 * Measures the candidates in turns, so that a disturbance of the machine affects all candidates alike. Each round starts with another
 * candidate. The first round does not count. Returns the values of each candidate, one for each round.
 */
export async function interleave<Name extends string, Value>(
  names: readonly Name[],
  rounds: number,
  measure: (name: Name) => Promise<Value>,
): Promise<Map<Name, Value[]>> {
  const values = new Map(names.map((name) => [name, [] as Value[]]))
  for (let round = -1; round < rounds; round += 1) {
    for (let turn = 0; turn < names.length; turn += 1) {
      const name = names[(turn + round + 1) % names.length]
      if (name === undefined) continue
      const value = await measure(name)
      if (round >= 0) values.get(name)?.push(value)
    }
  }
  return values
}

/** Returns the median of the ratios of one candidate to another. Each ratio is computed within one round. */
export function medianRatio(values: readonly number[], base: readonly number[]): number {
  return median(values.map((value, round) => value / (base[round] ?? Number.NaN)))
}
