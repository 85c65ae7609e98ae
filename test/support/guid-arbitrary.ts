import fc from 'fast-check'

/** Draws GUIDs as clients may write them: any digits, each letter in either case, never all zero. */
export const anyGuid: fc.Arbitrary<string> = fc
  .tuple(fc.uuid(), fc.infiniteStream(fc.boolean()))
  .map(([guid, upper]) =>
    guid.replace(/[a-f]/g, (digit) => (upper.next().value === true ? digit.toUpperCase() : digit)),
  )
