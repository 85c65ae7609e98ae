import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import type { Server } from 'node:http'

import { type Command, InvalidArgumentError } from 'commander'

import { toPartner } from '../../app/partners.ts'
import {
  createPseudonyms,
  createRecordingTarget,
  listRecordings,
  openRecordingStore,
  readRecording,
  type RecordedExchange,
  recordedKindOf,
  type RecordFate,
  toRecorded,
} from '../../compare/recording/index.ts'
import type { WireExchange } from '../../compare/wire-exchange.ts'
import { AdapterError, describeFileError } from '../../errors.ts'
import { startListening } from '../../http/server.ts'
import { createSlicing } from '../../http/slices.ts'
import { untilSignal } from '../signals.ts'
import { readRecordingKey } from '../key-source.ts'
import { createRecordingRelay } from '../recordings/recording-relay.ts'
import { readBase, readPercent, readPort } from '../options.ts'
import { findPartner, loadOffline } from '../target.ts'
import { type Answer, answerWith } from '../text.ts'

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
    .action(answerWith(exitWith, runRecord))
}

/** A reader of a number with one of these units. */
const readUnits =
  (units: Readonly<Record<string, number>>, rule: string) =>
  (text: string): number => {
    const [, count = '', unit = ''] = /^(\d{1,6})([a-z]{1,2})$/i.exec(text) ?? []
    const value = Number(count) * (units[unit] ?? units[unit.toUpperCase()] ?? 0)
    if (value > 0) return value
    throw new InvalidArgumentError(rule)
  }
const readTime = readUnits(
  { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 },
  'A time is a number with s, m, h or d, such as 10m.',
)
const readSize = readUnits(
  { KB: 1_000, MB: 1_000_000, GB: 1_000_000_000 },
  'A size is a number with KB, MB or GB, such as 500MB.',
)

/** The flags of `record`. */
interface RecordOptions {
  /** The address of V2, where traffic is recorded. */
  readonly v2?: URL
  /** A folder of recordings, where those are recorded again in another form. */
  readonly from?: string
  readonly to: string
  /** Where the key of `to` is, or of `from`: `env:NAME` or `file:path`. */
  readonly key?: string
  readonly pseudonyms?: boolean
  readonly host: string
  readonly port: number
  /** Of 100 exchanges. */
  readonly percent: number
  /** Bytes. */
  readonly maxSize: number
  /** Milliseconds. */
  readonly maxAge: number
  /** Milliseconds after which it ends by itself; undefined: with a signal. */
  readonly for?: number
  readonly json?: boolean
}

/** Larger bodies are relayed and not recorded. */
const MAX_EXCHANGE_BYTES = 33_554_432

/** 49 days. */
const MAX_TIMER_MS = 2 ** 32 - 1

/** How many exchanges had which fate. */
type Fates = Record<RecordFate | 'offered', number>

/** Records exchanges with V2, or writes recordings again as pseudonyms; status 1 where nothing was kept. Error: `ADP_USAGE`. */
async function runRecord(options: RecordOptions): Promise<Answer> {
  const { v2, from, pseudonyms = false, key } = options
  if ((v2 === undefined) === (from === undefined))
    throw new AdapterError(
      'ADP_USAGE',
      'Name what is recorded: --v2 <url> for traffic, or --from <dir> for recordings.',
    )
  if (from === undefined ? (key === undefined) === !pseudonyms : !pseudonyms)
    throw new AdapterError(
      'ADP_USAGE',
      from === undefined
        ? 'Recordings are never written in clear text: choose one of --key <source> (encrypted) and --pseudonyms.'
        : '--from writes recordings again with --pseudonyms; --key opens those that are encrypted.',
    )
  const secret = key === undefined ? undefined : await readRecordingKey(key)
  const fates: Fates = { offered: 0, recorded: 0, dropped: 0, unfit: 0, tooLarge: 0, stopped: 0 }
  let failure: string | undefined
  const store = await openStore(options, pseudonyms ? undefined : secret)
  const target = createRecordingTarget({
    open: () => Promise.resolve(store),
    // A key of this run alone, which ends with it: afterwards no one can undo a pseudonym.
    pseudonyms: pseudonyms ? createPseudonyms(randomBytes(32)) : undefined,
    onStopped: (cause) => {
      failure = describeFileError(cause)
      console.error(`markbridge: recording has stopped: ${options.to}: ${failure}. Requests go on to V2.`)
    },
  })
  const slicing = createSlicing()
  // No configuration is read: what V3 would get follows from the default settings.
  const config = await loadOffline(undefined)
  const partner = toPartner(findPartner(config, undefined), undefined, undefined, config)
  const keep: Keep = async (exchange) => {
    fates.offered += 1
    const recorded = 'kind' in exchange ? exchange : await toRecorded(exchange, MAX_EXCHANGE_BYTES)
    fates[recorded === undefined ? 'tooLarge' : await target.keep(recorded, partner, slicing.open())] += 1
  }
  if (from !== undefined)
    for (const folder of await listRecordings(from))
      await keep((await readRecording(folder, secret)).exchange)
  else if (v2 !== undefined) fates.dropped = await relayUntilStopped(v2, options, keep)
  fates.offered += fates.dropped
  return {
    document: { folder: options.to, ...fates },
    text: () => formatFates(options.to, fates),
    status: failure === undefined && (from === undefined || fates.recorded > 0) ? 0 : 1,
  }
}

type Keep = (exchange: WireExchange | RecordedExchange) => Promise<void>

/** More than this does not wait to be written: it is dropped. */
const [MAX_WAITING, MAX_BYTES] = [256, 33_554_432]

async function openStore({ to, maxSize, maxAge }: RecordOptions, key: Uint8Array | undefined) {
  try {
    return await openRecordingStore({ folder: to, key, maxBytes: maxSize, maxAgeMs: maxAge, nowMs: Date.now })
  } catch (cause) {
    throw new AdapterError('ADP_USAGE', `${to} cannot be written: ${describeFileError(cause)}.`, { cause })
  }
}

/** Relays and keeps what passes, one exchange after the other; returns how many were dropped since too much waited. */
async function relayUntilStopped(
  v2: URL,
  { host, port, percent, for: forMs, json }: RecordOptions,
  keep: Keep,
): Promise<number> {
  let [waiting, bytes, dropped] = [0, 0, 0]
  let last = Promise.resolve()
  const server = createRecordingRelay({
    v2,
    isRecorded: (method, target) =>
      recordedKindOf(method, target.split('?', 1)[0] ?? '') !== undefined && Math.random() * 100 < percent,
    onExchange: (exchange) => {
      const size = (exchange.request.body?.length ?? 0) + (exchange.reply.body?.length ?? 0)
      if (waiting >= MAX_WAITING || bytes + size > MAX_BYTES) {
        dropped += 1
        return
      }
      waiting += 1
      bytes += size
      last = last
        .then(() => keep(exchange))
        .finally(() => {
          waiting -= 1
          bytes -= size
        })
    },
    maxCopyBytes: MAX_EXCHANGE_BYTES,
  })
  const used = await startListening(server, port, host)
  if (json !== true) console.log(`record ready http://${host.includes(':') ? `[${host}]` : host}:${used}`)
  const stopping = untilSignal()
  const ends = forMs === undefined ? [] : [AbortSignal.timeout(Math.min(forMs, MAX_TIMER_MS))]
  await once(AbortSignal.any([stopping.signal, ...ends]), 'abort')
  stopping.stop()
  await closeServer(server)
  await last
  return dropped
}

/** Requests under way finish; a second signal ends the program. */
function closeServer(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve())
    server.closeIdleConnections()
  })
}

function formatFates(to: string, fates: Fates): string {
  const { offered, recorded, dropped, unfit, tooLarge, stopped } = fates
  const others = { dropped, unfit, 'too large': tooLarge, 'after recording stopped': stopped }
  return [
    `${recorded} of ${offered} exchange(s) recorded in ${to}`,
    ...Object.entries(others).flatMap(([what, count]) => (count > 0 ? [`  ${what}: ${count}`] : [])),
  ].join('\n')
}
