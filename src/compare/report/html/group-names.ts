const classes = new Map([
  ['code:present', 'Present codes'],
  ['code:absent', 'Absent codes'],
  ['code:neither', 'Codes that are neither'],
])
const kinds = new Map([
  ['marks', 'Marks'],
  ['registrations', 'Registrations'],
  ['batch', 'Batches of marks'],
  ['record', 'Single marks'],
  ['readFilter', 'Reads by filter'],
  ['readKey', 'Reads by key'],
])

/** A class of attendance codes in words; a name that is not known stays. */
export const className = (name: string): string => classes.get(name) ?? name

/** A kind of record or request in words; a name that is not known stays. */
export const kindName = (name: string): string => kinds.get(name) ?? name
