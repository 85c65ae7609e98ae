/**
 * Returns the number in an option of a command, such as 5 for `--seed 5`. Throws an error that names the option for any other text, because
 * a run with NaN cases would pass without a check.
 */
export function numberOption(name: string, text: string): number {
  const value = Number(text)
  if (text.trim() === '' || !Number.isFinite(value) || value < 0)
    throw new Error(`--${name} must be a number of at least 0. Nothing was run. Correct the option.`)
  return value
}
