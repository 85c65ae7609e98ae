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
const checks = new Map([
  ['reply', 'reply'],
  ['visible', 'seen on V3'],
  ['readBack', 'read back on V2'],
  ['answers', 'answers'],
])

/** A class of attendance codes in words; a name that is not known stays. */
export const className = (name: string): string => classes.get(name) ?? name

/** A kind of record or request in words, for live checks with what was checked; a name that is not known stays. */
export function kindName(name: string): string {
  const [kind = '', check] = name.split('/')
  const checked = check === undefined ? undefined : checks.get(check)
  if (check !== undefined && checked === undefined) return name
  return [kinds.get(kind) ?? kind, ...(checked === undefined ? [] : [checked])].join(', ')
}
