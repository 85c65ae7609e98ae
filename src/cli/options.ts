import { type Command, InvalidArgumentError } from 'commander'

/** Reads a TCP port, 0 (any free one) to 65535. */
export function readPort(text: string): number {
  const port = Number(text)
  if (!/^\d{1,5}$/.test(text) || port > 65_535)
    throw new InvalidArgumentError('A port is a number from 0 to 65535.')
  return port
}

/** Reads a whole number of zero or more. */
export function readCount(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError('A whole number is expected.')
  return Number(text)
}

/** Reads a share, 0 to 100. */
export function readPercent(text: string): number {
  const percent = Number(text)
  if (!/^\d{1,3}(?:\.\d{1,6})?$/.test(text) || percent > 100)
    throw new InvalidArgumentError('A share is a number from 0 to 100.')
  return percent
}

/** Reads the base address of a service. */
export function readBase(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol) || hasMore(url))
    throw new InvalidArgumentError(
      'It must be an http or https address without user, password, query or fragment.',
    )
  return url
}

const hasMore = ({ username, password, search, hash }: URL): boolean =>
  username + password + search + hash !== ''

/** The flags that name a configuration and a journal, and how a result is printed. */
export interface Target {
  readonly config?: string
  readonly journal?: string
  readonly json?: boolean
}

/** Adds the flags of `Target`; `config` says what the file is for. */
export function withTarget(command: Command, config: string): Command {
  return command
    .option('--config <file>', config)
    .option('--journal <url>', 'sqlite:<file> (default sqlite:./data/journal.db) or postgres://…')
    .option('--json', 'print one JSON document')
}
