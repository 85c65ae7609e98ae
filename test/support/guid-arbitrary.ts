import fc from 'fast-check'

/** A guid as a client may write it: any digits, each letter in either case, never all zero. */
export const anyGuid: fc.Arbitrary<string> = fc
  .tuple(fc.uuid(), fc.infiniteStream(fc.boolean()))
  .map(([guid, upper]) =>
    guid.replace(/[a-f]/g, (digit) => (upper.next().value === true ? digit.toUpperCase() : digit)),
  )
