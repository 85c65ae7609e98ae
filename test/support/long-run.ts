/** True in `npm run test:long`, which draws more random cases than the other runs. */
export const isLongRun = process.env['MARKBRIDGE_LONG_TESTS'] !== undefined

/** Returns how often a test draws a random case: `usual` times in most runs, and `long` times in the long run. */
export function runs(usual: number, long: number): number {
  return isLongRun ? long : usual
}
