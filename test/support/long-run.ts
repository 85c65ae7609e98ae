/** True in `npm run test:long`, which draws more of what `npm test` draws a few of. */
export const isLongRun = process.env['MARKBRIDGE_LONG_TESTS'] !== undefined

/** How often a test draws something: in `npm test`, and in the long run. */
export function runs(usual: number, long: number): number {
  return isLongRun ? long : usual
}
