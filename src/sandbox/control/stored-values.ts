import { z } from 'zod'

const commentRule = z.union([
  z.enum(['trim', 'trimEnd', 'collapse', 'nfc', 'nfd', 'crlfToLf', 'lfToCrlf']),
  z.strictObject({ cut: z.int().min(0) }),
])

/** The schema of the body of `PUT /_sandbox/values`. By default every value is stored unchanged. */
export const valueRulesSchema = z.strictObject({
  /** The precision of `RecordedOn`: unchanged, truncated or rounded to seconds or minutes, or rounded to the 1/300 s of SQL Server. */
  times: z
    .enum(['keep', 'seconds', 'roundSeconds', 'sqlDatetime', 'minutes', 'roundMinutes'])
    .default('keep'),
  /** The source of `RecordedOn`: the time that the client sent, if there is one, or always the time of the service. */
  clock: z.enum(['client', 'server']).default('client'),
  /** The time in milliseconds by which the clock of the service is ahead (positive) or behind (negative). */
  offsetMs: z.int().min(-864_000_000).max(864_000_000).default(0),
  /** The rules for comments, which are applied in the given order. `cut` keeps the given number of UTF-16 code units. */
  comments: z.array(commentRule).default([]),
  nulls: z.array(z.enum(['minutesLateToZero', 'zeroToNull', 'commentToEmpty', 'emptyToNull'])).default([]),
  /** The values that the reply to a POST shows: the stored values or the posted values. */
  echo: z.enum(['stored', 'posted']).default('stored'),
})

export type ValueRules = z.output<typeof valueRulesSchema>

/** The values of a mark that the service may change before it stores them. Times are milliseconds since 1970. */
interface MarkValues {
  readonly minutesLate: number | null
  readonly comment: string | null
  readonly recordedOn: number
}

/** The posted values. Without `recordedOn` the service uses its own time. */
interface PostedValues extends Omit<MarkValues, 'recordedOn'> {
  readonly recordedOn: number | undefined
}

/** Applies the rules to posted values. Returns the values to store and the values that the reply shows. `now` is in milliseconds. */
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
      // The milliseconds of an SQL Server datetime end in 0, 3 or 7.
      return Math.round((Math.round((ms * 3) / 10) * 10) / 3)
    case 'minutes':
      return Math.floor(ms / 60_000) * 60_000
    case 'roundMinutes':
      return Math.round(ms / 60_000) * 60_000
  }
}
