import type { z } from 'zod'
import { AdapterError } from '../../errors.ts'

/** A setting that can be changed while the sandbox runs, through its own route below `/_sandbox`. */
export interface Setting<Shown = unknown> {
  current(): Shown
  /** Replaces the value. Throws `ADP_USAGE` with every validation error of the new value. */
  put(body: unknown): void
  clear(): void
}

/** Creates a setting with the defaults of the schema. `what` names the setting in errors. */
export function createSetting<Value>(schema: z.ZodType<Value>, what: string): Setting<Value> {
  let value = schema.parse({})
  return {
    current: () => value,
    put: (body) => {
      value = readBody(schema, body, what)
    },
    clear: () => {
      value = schema.parse({})
    },
  }
}

/** Validates the body of a control request. `what` names the body in the error. Throws `ADP_USAGE` with every validation error. */
export function readBody<Value>(schema: z.ZodType<Value>, body: unknown, what: string): Value {
  const parsed = schema.safeParse(body)
  if (parsed.success) return parsed.data
  const details = parsed.error.issues.map(({ path, message }) => ({
    code: 'ADP_USAGE',
    message,
    target: path.join('.'),
  }))
  throw new AdapterError(
    'ADP_USAGE',
    `${what} cannot be read. Nothing was changed. Correct the members that the details name.`,
    { details },
  )
}
