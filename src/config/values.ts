import * as z from 'zod'

import { hasWholeHost } from '../http/address.ts'
import { decodeKey, Secret } from './secret.ts'

/** Adds the meaning of a configuration key to its schema. The JSON Schema and docs/configuration.md show the meaning beside the default. */
export const key = <Schema extends z.ZodType>(meaning: string, schema: Schema): Schema =>
  schema.describe(meaning)

/** Accepts a whole number, or a text that consists of a number and a unit. `rule` is the message for anything else. */
function amount(units: Readonly<Record<string, number>>, rule: string, min: number, max: number) {
  const number = z.int().min(min).max(max)
  const text = z
    .string()
    .regex(new RegExp(`^[0-9]{1,9}([.][0-9]{1,3})?(${Object.keys(units).join('|')})$`))
    .transform((own) => Math.round(Number.parseFloat(own) * (units[own.replace(/^[\d.]+/, '')] ?? 0)))
  return z.union([number, text.pipe(number)], rule)
}

/** The longest delay of a timer in Node.js. A timer with a longer delay fires immediately. */
const MAX_TIMER_MS = 2_147_483_647
const timeUnits = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** Accepts a time in milliseconds, or a text such as `15s`. */
export const timeWithin = (min: number, max: number) =>
  amount(timeUnits, 'must be a time such as 500ms, 15s, 10m, 24h or 30d', min, max)
export const ms = timeWithin(1, MAX_TIMER_MS)

const sizeUnits = { B: 1, KB: 1e3, MB: 1e6, GB: 1e9, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30 }

/** Accepts a size in bytes, or a text such as `500MB`. */
export const bytes = amount(
  sizeUnits,
  'must be a size such as 64KiB, 500MB or 1GB',
  1,
  Number.MAX_SAFE_INTEGER,
)
export const percent = z.number().min(0).max(100)

export const httpUrl = z
  .string()
  .meta({ pattern: '^[Hh][Tt][Tt][Pp][Ss]?:' })
  .refine(
    (text) => /^https?:$/.test(URL.canParse(text) ? new URL(text).protocol : ''),
    'must be an http or https address',
  )
  .transform((text) => new URL(text))
  .refine(
    (url) =>
      url.username === '' && url.password === '' && url.search === '' && url.hash === '' && hasWholeHost(url),
    'must have no user, password, query or fragment, and no @ in the path (write %40 instead)',
  )

/** A secret, which the file never contains in plain text. Loading replaces `{ env: NAME }` or `{ file: path }` by the value. */
export const secret = z.instanceof(Secret, {
  error: 'must be { env: NAME } or { file: path }, never the value itself',
})

/** A secret that is sent as the value of a header field, which cannot carry characters beyond Latin-1. */
export const fieldSecret = secret.refine(
  (value) => /^[\t\x20-\x7e\x80-\xff]*$/.test(value.reveal()),
  'contains a character that no header field can carry. Check how the value was copied',
)

export const textOrSecret = z.union(
  [z.string().min(1), secret],
  'must be a text, { env: NAME } or { file: path }',
)

/** An encryption key of 32 bytes, written as 64 hexadecimal digits or in base64. */
export const keySecret = z
  .instanceof(Secret, { error: 'must be { env: NAME } or { file: path }, never the key itself' })
  .refine(
    // A secret that was not read passes. If it is missing, `resolveSecrets` has already reported the fault.
    (own) => !own.isRead || decodeKey(own) !== undefined,
    'must be 32 bytes: 64 hexadecimal digits, or base64',
  )
