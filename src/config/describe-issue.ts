import type * as z from 'zod'

/** Names of types for the reader of the file. */
const types: Readonly<Record<string, string>> = {
  object: 'a mapping of keys',
  record: 'a mapping of keys',
  array: 'a list',
  string: 'a text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
}

/**
 * Describes a fault of a value in terms of the file; messages of the schema take precedence. Undefined: zod's message is used.
 * The description never contains the value.
 */
export function describeIssue(issue: z.core.$ZodRawIssue): string | undefined {
  switch (issue.code) {
    case 'invalid_type':
      if (issue.input === undefined) return 'is required'
      return `must be ${types[issue.expected] ?? issue.expected}${receivedOf(issue.input)}`
    case 'invalid_value':
      return `must be ${issue.values
        .map(String)
        .join(', ')
        .replace(/, ([^,]*)$/, ' or $1')}`
    case 'invalid_format':
      return issue.format === 'starts_with' ? `must begin with "${String(issue['prefix'])}"` : undefined
    case 'too_small':
      return boundOf(issue.origin, issue.inclusive === false ? 'more than' : 'at least', issue.minimum)
    case 'too_big':
      return boundOf(issue.origin, issue.inclusive === false ? 'less than' : 'at most', issue.maximum)
    default:
      return undefined
  }
}

function receivedOf(value: unknown): string {
  if (value === null) return ', not empty'
  if (typeof value === 'number') return Number.isInteger(value) ? ', not a number' : ', without a fraction'
  const type = Array.isArray(value) ? 'array' : typeof value
  return type === 'boolean' ? ', not true or false' : `, not ${types[type] ?? type}`
}

function boundOf(origin: string, relation: string, bound: number | bigint): string {
  if (origin === 'string') return `must have ${relation} ${bound} character${bound === 1 ? '' : 's'}`
  if (origin === 'array') return `must have ${relation} ${bound} ${bound === 1 ? 'entry' : 'entries'}`
  return `must be ${relation} ${bound}`
}
