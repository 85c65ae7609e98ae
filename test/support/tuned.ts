/** The environment of a process whose times and bounds a test shortens (`src/config/schema.ts`). */
export const tuned = (tuning: object = {}): Record<string, string> => ({
  MARKBRIDGE_TEST_TUNING: JSON.stringify(tuning),
})
