import { type Command, InvalidArgumentError, Option } from 'commander'
import * as z from 'zod'

import { CONFIG_FILE, foundConfig } from '../config/environment.ts'
import { bytes, httpUrl, ms } from '../config/values.ts'
import { AdapterError } from '../errors.ts'

/** Reads a flag by a schema; `rule` is the message for anything else, where that of the schema does not say it. */
export const readAs =
  <Value>(schema: z.ZodType<Value>, rule?: string) =>
  (text: string): Value => {
    const { data, error } = schema.safeParse(text)
    if (data !== undefined) return data
    throw new InvalidArgumentError(rule ?? `${error?.issues[0]?.message.replace(/^must/, 'It must') ?? ''}.`)
  }

const number = (digits: RegExp, min: number, max: number) =>
  z.string().regex(digits).transform(Number).pipe(z.number().min(min).max(max))

/** Reads a whole number of a range. */
export const readWhole = (min: number, max: number, rule: string) =>
  readAs(number(/^\d{1,9}$/, min, max), rule)

/** Reads a time such as `10m`, in milliseconds. */
export const readTime = readAs(ms)

/** Reads a size such as `500MB`, in bytes. */
export const readSize = readAs(bytes)

/** Reads a TCP port, 0 (any free one) to 65535. */
export const readPort = readWhole(0, 65_535, 'A port is a number from 0 to 65535.')

/** Reads a whole number of zero or more. */
export const readCount = readWhole(0, 999_999_999, 'A whole number is expected.')

/** Reads a share, 0 to 100. */
export const readPercent = readAs(
  number(/^\d{1,3}(?:\.\d{1,6})?$/, 0, 100),
  'A share is a number from 0 to 100.',
)

/** Reads the base address of a service. */
export const readBase = readAs(
  httpUrl,
  'It must be an http or https address without user, password, query or fragment, and with %40 for an at sign in its path.',
)

/** The flags that name a configuration and a journal, and how a result is printed. */
export interface Target {
  readonly config?: string
  readonly journal?: string
  readonly json?: boolean
}

/** The flag of a configuration that is found by itself; `use` says what the file is for. */
export const configOption = (use: string): Option =>
  new Option('--config <file>', `${use}; else MARKBRIDGE_CONFIG, else ./${CONFIG_FILE}`).default(
    foundConfig(),
  )

/** Where a command that needs a configuration looks for it. */
export const NO_CONFIG = `No configuration was found: name one with --config or MARKBRIDGE_CONFIG, or write ./${CONFIG_FILE} (markbridge init)`

/** The configuration of a command that cannot do without. Error: `ADP_USAGE`. */
export function expectConfig(given = foundConfig()): string {
  if (given === undefined) throw new AdapterError('ADP_USAGE', `${NO_CONFIG}.`)
  return given
}

/** Adds the flags of `Target`; `config` says what the file is for. */
export function withTarget(command: Command, config: string): Command {
  return command
    .addOption(configOption(config))
    .option('--journal <url>', 'sqlite:<file> (default sqlite:./data/journal.db) or postgres://…')
    .option('--json', 'print one JSON document')
}
