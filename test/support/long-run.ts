/** True in `npm run test:long`, which draws more of what the other runs draw a few of. */
export const isLongRun = process.env['MARKBRIDGE_LONG_TESTS'] !== undefined

/** How often a test draws something: usually, and in the long run. */
export function runs(usual: number, long: number): number {
  return isLongRun ? long : usual
}
