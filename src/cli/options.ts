import { type Command, InvalidArgumentError, Option } from 'commander'
import * as z from 'zod'

import { CONFIG_FILE, foundConfig } from '../config/environment.ts'
import { bytes, httpUrl, ms } from '../config/values.ts'
import { AdapterError } from '../errors.ts'

/** Creates a parser for the value of a flag. `rule` is the message for an invalid value. Default: the message of the schema. */
export const readAs =
  <Value>(schema: z.ZodType<Value>, rule?: string) =>
  (text: string): Value => {
    const { data, error } = schema.safeParse(text)
    if (data !== undefined) return data
    throw new InvalidArgumentError(
      rule ?? `${error?.issues[0]?.message.replace(/^must/, 'The value must') ?? ''}.`,
    )
  }

const number = (digits: RegExp, min: number, max: number) =>
  z.string().regex(digits).transform(Number).pipe(z.number().min(min).max(max))

export const readWhole = (min: number, max: number, rule: string) =>
  readAs(number(/^\d{1,9}$/, min, max), rule)

export const readTime = readAs(ms)

export const readSize = readAs(bytes)

/** Reads a port. 0 stands for any free port. */
export const readPort = readWhole(0, 65_535, 'The port must be a whole number from 0 to 65535.')

export const readCount = readWhole(0, 999_999_999, 'The value must be a whole number.')

export const readPercent = readAs(
  number(/^\d{1,3}(?:\.\d{1,6})?$/, 0, 100),
  'The percentage must be a number from 0 to 100.',
)

export const readBase = readAs(
  httpUrl,
  'The address must be http or https, without user, password, query or fragment. Write an at sign in the path as %40.',
)

export interface Target {
  readonly config?: string
  readonly journal?: string
  readonly json?: boolean
}

/** Creates the flag `--config`. `use` says in the help text what the command uses the file for. */
export const configOption = (use: string): Option =>
  new Option('--config <file>', `${use}; else MARKBRIDGE_CONFIG, else ./${CONFIG_FILE}`).default(
    foundConfig(),
  )

export const NO_CONFIG = `No configuration was found. Name a file with --config or MARKBRIDGE_CONFIG, or create ./${CONFIG_FILE} with markbridge init`

/** Returns the path of the configuration. Throws `ADP_USAGE` if no configuration is named or found. */
export function expectConfig(given = foundConfig()): string {
  if (given === undefined) throw new AdapterError('ADP_USAGE', `${NO_CONFIG}.`)
  return given
}

/** Adds the flags of `Target` to a command. `config` says in the help text what the command uses the configuration file for. */
export function withTarget(command: Command, config: string): Command {
  return command
    .addOption(configOption(config))
    .option('--journal <url>', 'sqlite:<file> (default sqlite:./data/journal.db) or postgres://…')
    .option('--json', 'print one JSON document')
}
