import { type Command, InvalidArgumentError } from 'commander'

import type { RecordOptions } from '../run-record.ts'
import { readPercent, readPort } from './read-option.ts'

const examples = `
Sends everything on to V2 as it comes and keeps exchanges with marks and registrations as files, one folder each. Credentials are never
kept. Point a client at the printed address; V3 and a journal are not needed.

Examples:
  markbridge record --v2 https://v2.example --to ./recordings --pseudonyms --for 1h
  markbridge record --v2 https://v2.example --to ./recordings --key env:RECORDING_KEY
  markbridge record --from ./recordings --key env:RECORDING_KEY --pseudonyms --to ./for-support
  markbridge compare run --recording ./recordings

--key encrypts with AES-256-GCM: 32 bytes, as openssl rand -hex 32 prints them, from env:NAME or file:path. --pseudonyms replaces every id, name
and text under a key that ends with the command; a batch that cannot be decoded is then not recorded. SIGINT and SIGTERM end the command.
Exit status: 0 done; 1 recording stopped, such as with a full disk, or nothing could be recorded again; 2 wrong usage or key.`

/** Adds `record`: relays to V2 and records, or records recordings again as pseudonyms. */
export function addRecord(command: Command, exitWith: (status: number) => void): void {
  command
    .option('--v2 <url>', 'address of V2: relay to it and record', readBase)
    .option('--from <dir>', 'recordings that are written again with --pseudonyms')
    .requiredOption('--to <dir>', 'folder of the recordings')
    .option('--key <source>', 'encrypt with the key of env:NAME or file:path; with --from: open with it')
    .option('--pseudonyms', 'replace every id, name and text')
    .option('--host <host>', 'address to listen on', '127.0.0.1')
    .option('--port <n>', 'port to listen on', readPort, 8080)
    .option('--percent <n>', 'share of the exchanges that are recorded', readPercent, 100)
    .option(
      '--max-size <size>',
      'bound of the folder, such as 500MB; the oldest go first',
      readSize,
      1_000_000_000,
    )
    .option('--max-age <time>', 'how long recordings are kept, such as 12h or 30d', readTime, 2_592_000_000)
    .option('--for <time>', 'end after this time, such as 10m or 24h', readTime)
    .option('--json', 'print one JSON document at the end')
    .addHelpText('after', examples)
    .action(async ({ maxSize, maxAge, for: forMs, ...options }: Flags) => {
      const { runRecord } = await import('../run-record.ts')
      const times = { maxBytes: maxSize, maxAgeMs: maxAge, ...(forMs === undefined ? {} : { forMs }) }
      exitWith(await runRecord({ ...options, ...times }))
    })
}

type Flags = Omit<RecordOptions, 'maxBytes' | 'maxAgeMs' | 'forMs'> & {
  readonly maxSize: number
  readonly maxAge: number
  readonly for?: number
}

function readBase(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (
    url === undefined ||
    !/^https?:$/.test(url.protocol) ||
    url.username + url.password + url.search + url.hash !== ''
  )
    throw new InvalidArgumentError('It must be an http or https address without user, query or fragment.')
  return url
}

const units: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }
const sizes: Readonly<Record<string, number>> = { KB: 1_000, MB: 1_000_000, GB: 1_000_000_000 }

function readTime(text: string): number {
  const [, count = '', unit = ''] = /^(\d{1,5})([smhd])$/.exec(text) ?? []
  const ms = Number(count) * (units[unit] ?? 0)
  if (ms > 0) return ms
  throw new InvalidArgumentError('A time is a number with s, m, h or d, such as 10m.')
}

function readSize(text: string): number {
  const [, count = '', unit = ''] = /^(\d{1,6})(KB|MB|GB)$/i.exec(text) ?? []
  const bytes = Number(count) * (sizes[unit.toUpperCase()] ?? 0)
  if (bytes > 0) return bytes
  throw new InvalidArgumentError('A size is a number with KB, MB or GB, such as 500MB.')
}
