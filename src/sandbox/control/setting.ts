import type { z } from 'zod'
import { AdapterError } from '../../errors.ts'

/** What may be changed while the sandbox runs, at a route of its own below `/_sandbox`. */
export interface Setting<Shown = unknown> {
  /** What GET shows. */
  current(): Shown
  /** Replaces it by the body of a PUT. Errors: `ADP_USAGE` with every fault of the form. */
  put(body: unknown): void
  /** Restores the default. */
  clear(): void
}

/** Creates a setting that begins with what the schema makes of `{}`; `what` names it in errors. */
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

/** Reads the body of a control route; `what` names it in the error. Errors: `ADP_USAGE` with every fault of the form. */
export function readBody<Value>(schema: z.ZodType<Value>, body: unknown, what: string): Value {
  const parsed = schema.safeParse(body)
  if (parsed.success) return parsed.data
  const details = parsed.error.issues.map(({ path, message }) => ({
    code: 'ADP_USAGE',
    message,
    target: path.join('.'),
  }))
  throw new AdapterError('ADP_USAGE', `${what} cannot be read.`, { details })
}
