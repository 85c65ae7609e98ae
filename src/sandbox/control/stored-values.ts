import { z } from 'zod'

const commentRule = z.union([
  z.enum(['trim', 'trimEnd', 'collapse', 'nfc', 'nfd', 'crlfToLf', 'lfToCrlf']),
  z.strictObject({ cut: z.int().min(0) }),
])

/** The body of `PUT /_sandbox/values`; without any, every value is kept. */
export const valueRulesSchema = z.strictObject({
  /** Precision of `RecordedOn`: cut to seconds or minutes, rounded to them, or to SQL's 1/300 s. */
  times: z
    .enum(['keep', 'seconds', 'roundSeconds', 'sqlDatetime', 'minutes', 'roundMinutes'])
    .default('keep'),
  /** Whose time `RecordedOn` is: the client's where it sent one, or always the service's own. */
  clock: z.enum(['client', 'server']).default('client'),
  /** How far the service's own time is ahead (positive) or behind, in milliseconds. */
  offsetMs: z.int().min(-864_000_000).max(864_000_000).default(0),
  /** Applied in this order. `cut` keeps this number of UTF-16 code units. */
  comments: z.array(commentRule).default([]),
  nulls: z.array(z.enum(['minutesLateToZero', 'zeroToNull', 'commentToEmpty', 'emptyToNull'])).default([]),
  /** The values in the reply to a POST: those stored, or those posted. */
  echo: z.enum(['stored', 'posted']).default('stored'),
})

/** The changes of the service to the values of a write before it stores them. */
export type ValueRules = z.output<typeof valueRulesSchema>

/** The values of a mark that a service may store otherwise than they were posted. */
interface MarkValues {
  readonly minutesLate: number | null
  readonly comment: string | null
  /** Milliseconds. */
  readonly recordedOn: number
}

/** The values as a client sent them; without `recordedOn` the service's own time counts. */
interface PostedValues extends Omit<MarkValues, 'recordedOn'> {
  readonly recordedOn: number | undefined
}

/** The values as they are stored, and as the answer to the write shows them. `now` is the sandbox's time in milliseconds. */
export function storeValues(
  rules: ValueRules,
  { minutesLate, comment, recordedOn }: PostedValues,
  now: number,
): { readonly stored: MarkValues; readonly echoed: MarkValues } {
  const ownMs = now + rules.offsetMs
  const stored = {
    minutesLate: storeMinutes(minutesLate, rules),
    comment: storeComment(comment, rules),
    recordedOn: roundTime(rules.clock === 'server' ? ownMs : (recordedOn ?? ownMs), rules.times),
  }
  const posted = { minutesLate, comment, recordedOn: recordedOn ?? stored.recordedOn }
  return { stored, echoed: rules.echo === 'posted' ? posted : stored }
}

function storeMinutes(minutes: number | null, { nulls }: ValueRules): number | null {
  if (minutes === null) return nulls.includes('minutesLateToZero') ? 0 : null
  return minutes === 0 && nulls.includes('zeroToNull') ? null : minutes
}

function storeComment(comment: string | null, { nulls, comments }: ValueRules): string | null {
  let stored = comment
  if (stored !== null) for (const rule of comments) stored = applyRule(stored, rule)
  if (stored === null && nulls.includes('commentToEmpty')) return ''
  return stored === '' && nulls.includes('emptyToNull') ? null : stored
}

function applyRule(text: string, rule: ValueRules['comments'][number]): string {
  switch (rule) {
    case 'trim':
      return text.trim()
    case 'trimEnd':
      return text.trimEnd()
    case 'collapse':
      return text.replaceAll(/\s+/g, ' ')
    case 'nfc':
      return text.normalize('NFC')
    case 'nfd':
      return text.normalize('NFD')
    case 'crlfToLf':
      return text.replaceAll('\r\n', '\n')
    case 'lfToCrlf':
      return text.replaceAll(/\r?\n/g, '\r\n')
    default:
      return text.slice(0, rule.cut)
  }
}

function roundTime(ms: number, times: ValueRules['times']): number {
  switch (times) {
    case 'keep':
      return ms
    case 'seconds':
      return Math.floor(ms / 1000) * 1000
    case 'roundSeconds':
      return Math.round(ms / 1000) * 1000
    case 'sqlDatetime':
      // Milliseconds of a datetime end in 0, 3 or 7.
      return Math.round((Math.round((ms * 3) / 10) * 10) / 3)
    case 'minutes':
      return Math.floor(ms / 60_000) * 60_000
    case 'roundMinutes':
      return Math.round(ms / 60_000) * 60_000
  }
}
