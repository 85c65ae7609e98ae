import type { z } from 'zod'
import { AdapterError } from '../../errors.ts'

/** A setting that may be changed while the sandbox runs. */
export interface Setting<Value> {
  readonly current: () => Value
  /** Undefined: the default. */
  readonly set: (value: Value | undefined) => void
}

export function createSetting<Value>(standard: Value): Setting<Value> {
  let value = standard
  return {
    current: () => value,
    set: (next = standard) => {
      value = next
    },
  }
}

/** Reads the body of a control route; `what` names it in the error. Errors: `ADP_USAGE` with every fault of the form. */
export function readRules<Rules>(schema: z.ZodType<Rules>, body: unknown, what: string): Rules {
  const parsed = schema.safeParse(body)
  if (parsed.success) return parsed.data
  const details = parsed.error.issues.map(({ path, message }) => ({
    code: 'ADP_USAGE',
    message,
    target: path.join('.'),
  }))
  throw new AdapterError('ADP_USAGE', `${what} cannot be read.`, { details })
}
