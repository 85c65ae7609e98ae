import * as z from 'zod'

import { decodeKey, Secret } from './secret.ts'

/** A key of the file with its meaning: one sentence, which the JSON schema and docs/configuration.md show beside its default. */
export const key = <Schema extends z.ZodType>(meaning: string, schema: Schema): Schema =>
  schema.describe(meaning)

/** Node's timers fire at once for more. */
const MAX_TIMER_MS = 2_147_483_647
export const ms = z.int().positive().max(MAX_TIMER_MS)
export const bytes = z.int().positive()
export const percent = z.number().min(0).max(100)

/** The address of a service. */
export const httpUrl = z
  .string()
  .meta({ pattern: '^[Hh][Tt][Tt][Pp][Ss]?:' })
  .refine(
    (text) => /^https?:$/.test(URL.canParse(text) ? new URL(text).protocol : ''),
    'must be an http or https address',
  )
  .transform((text) => new URL(text))
  .refine(
    (url) => url.username === '' && url.password === '' && url.search === '' && url.hash === '',
    'must have no user, password, query or fragment',
  )

/** A secret is never written into the file: loading resolves `{ env: NAME }` or `{ file: path }` to one. */
export const secret = z.instanceof(Secret, {
  error: 'must be { env: NAME } or { file: path }, never the value itself',
})

/** A text that may be a secret. */
export const textOrSecret = z.union(
  [z.string().min(1), secret],
  'must be a text, { env: NAME } or { file: path }',
)

/** A key is 32 bytes, written as 64 hexadecimal digits or in base64. */
export const keySecret = z
  .instanceof(Secret, { error: 'must be { env: NAME } or { file: path }, never the key itself' })
  .refine(
    // The fault of an empty secret was reported when it was resolved.
    (own) => own.reveal() === '' || decodeKey(own) !== undefined,
    'must be 32 bytes: 64 hexadecimal digits, or base64',
  )
