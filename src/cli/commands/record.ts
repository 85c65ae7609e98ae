import { randomBytes } from 'node:crypto'
import { once } from 'node:events'

import { type Command, Option } from 'commander'
import * as z from 'zod'

import { createApp } from '../../app.ts'
import { createPseudonyms } from '../../compare/recording/pseudonyms.ts'
import { listRecordings, readRecording } from '../../compare/recording/recording-files.ts'
import {
  createRecordingTarget,
  openRecordingStore,
  type RecordFate,
  type RecordingStore,
} from '../../compare/recording/recording-store.ts'
import { parseConfig, Secret } from '../../config/index.ts'
import { AdapterError, describeFileError } from '../../errors.ts'
import { readRecordingKey } from '../files.ts'
import { readBase, readPort, readSize, readTime } from '../options.ts'
import { untilSignal } from '../signals.ts'
import { type Answer, answerWith } from '../text.ts'

const examples = `
Sends everything on to V2 as it comes and keeps exchanges with marks and
registrations as files, one folder each. Credentials are never kept. Point a
client at the printed address; V3 and a journal are not needed.

Examples:
  markbridge record --v2 https://v2.example --out ./recordings --pseudonyms
  markbridge record --v2 https://v2.example --out ./recordings \\
    --key env:RECORDING_KEY --for 4h --max-size 500MB
  markbridge record --recording ./recordings --key env:RECORDING_KEY \\
    --pseudonyms --out ./for-support
  markbridge compare run --recording ./recordings

--key encrypts with AES-256-GCM: 32 bytes, as openssl rand -hex 32 prints them,
from env:NAME or file:path. --pseudonyms replaces every id, name and text under
a key that ends with the command; a batch that cannot be decoded is then not
recorded. SIGINT and SIGTERM end the command.
Exit status: 0 done; 1 recording stopped, such as with a full disk, or nothing
could be recorded again; 2 wrong usage or key.`

/** Adds `record`: relays to V2 and records, or records recordings again as pseudonyms. */
export function addRecord(command: Command, exitWith: (status: number) => void): void {
  command
    .option('--v2 <url>', 'address of V2: relay to it and record', readBase)
    .addOption(
      new Option('--recording <dir>', 'recordings that are written again with --pseudonyms').conflicts('v2'),
    )
    .requiredOption('--out <dir>', 'folder that the recordings are written to')
    .option('--key <source>', 'key of the recordings: env:NAME or file:path')
    .option('--pseudonyms', 'replace every id, name and text')
    .option('--host <host>', 'address to listen on', '127.0.0.1')
    .option('--port <n>', 'port to listen on', readPort, 8080)
    .option(
      '--max-size <size>',
      'bound of the folder, such as 500MB; the oldest go first',
      readSize,
      1_000_000_000,
    )
    .option('--for <time>', 'end after this time, such as 10m or 24h', readTime)
    .option('--json', 'print one JSON document at the end')
    .addHelpText('after', examples)
    .action(answerWith(exitWith, runRecord))
}

/** The flags of `record`. */
interface RecordOptions {
  /** The address of V2, where traffic is recorded. */
  readonly v2?: URL
  /** A folder of recordings, where those are recorded again in another form. */
  readonly recording?: string
  readonly out: string
  /** `env:NAME` or `file:path`: of `recording`, or else of `out`. */
  readonly key?: string
  readonly pseudonyms?: boolean
  readonly host: string
  readonly port: number
  /** Bytes. */
  readonly maxSize: number
  /** Milliseconds after which it ends by itself; undefined: with a signal. */
  readonly for?: number
  readonly json?: boolean
}

/** V2 decides: a batch may take minutes. */
const TIMEOUTS = { headersMs: 600_000 }

/** How many exchanges had which fate. */
type Fates = Readonly<Record<RecordFate, number>>

/** Records exchanges with V2, or writes recordings again as pseudonyms; status 1 where nothing was kept. Error: `ADP_USAGE`. */
async function runRecord(options: RecordOptions): Promise<Answer> {
  const { v2, recording, pseudonyms = false, key, out } = options
  if (v2 === undefined && recording === undefined)
    throw new AdapterError(
      'ADP_USAGE',
      'Name what is recorded: --v2 <url> for traffic, or --recording <dir> for recordings.',
    )
  if (recording === undefined ? (key === undefined) === !pseudonyms : !pseudonyms)
    throw new AdapterError(
      'ADP_USAGE',
      recording === undefined
        ? 'Recordings are never written in clear text: choose one of --key <source> (encrypted) and --pseudonyms.'
        : '--recording writes recordings again with --pseudonyms; --key opens those that are encrypted.',
    )
  const secret = key === undefined ? undefined : await readRecordingKey(key)
  const store = await openStore(options, pseudonyms ? undefined : secret)
  const fates =
    v2 === undefined ? await recordAgain(recording ?? '', store, secret) : await relay(v2, options, secret)
  const offered = Object.values(fates).reduce((sum, count) => sum + count, 0)
  return {
    document: { folder: out, offered, ...fates },
    text: () => formatFates(out, offered, fates),
    status: fates.stopped === 0 && (v2 !== undefined || fates.recorded > 0) ? 0 : 1,
  }
}

/** Says at once where the folder cannot be written. */
async function openStore(
  { out, maxSize }: RecordOptions,
  key: Uint8Array | undefined,
): Promise<RecordingStore> {
  try {
    return await openRecordingStore({ folder: out, key, maxBytes: maxSize, nowMs: Date.now })
  } catch (cause) {
    throw new AdapterError('ADP_USAGE', `${out} cannot be written: ${describeFileError(cause)}.`, { cause })
  }
}

const countFates = (countOf: (fate: RecordFate) => number): Fates => ({
  recorded: countOf('recorded'),
  dropped: countOf('dropped'),
  unfit: countOf('unfit'),
  tooLarge: countOf('tooLarge'),
  stopped: countOf('stopped'),
})

async function recordAgain(
  folder: string,
  store: RecordingStore,
  secret: Uint8Array | undefined,
): Promise<Fates> {
  const target = createRecordingTarget({
    open: () => Promise.resolve(store),
    // A key of this run alone, which ends with it: afterwards no one can undo a pseudonym.
    pseudonyms: createPseudonyms(randomBytes(32)),
    onStopped: (cause) => console.error(`markbridge: recording has stopped: ${describeFileError(cause)}.`),
  })
  const fates: RecordFate[] = []
  for (const one of await listRecordings(folder))
    fates.push(await target.keep((await readRecording(one, secret)).exchange))
  return countFates((fate) => fates.filter((own) => own === fate).length)
}

/** The counter of recorded exchanges, as `App.metrics` has it. */
const fateCounts = z.object({
  name: z.literal('markbridge_record_exchanges_total'),
  values: z.array(z.object({ labels: z.object({ fate: z.string() }), value: z.number() })),
})

/** Runs an adapter at stage `legacy` with V2 on either side, so that everything goes there, until it is to end. */
async function relay(
  v2: URL,
  { host, port, out, maxSize, for: forMs, json }: RecordOptions,
  secret: Uint8Array | undefined,
): Promise<Fates> {
  const side = { baseUrl: v2.href, timeouts: TIMEOUTS }
  const form =
    secret === undefined ? { pseudonyms: true } : { key: new Secret(Buffer.from(secret).toString('hex')) }
  const config = parseConfig({
    listen: { host, port },
    upstreams: { v3: side, v2: side },
    journal: { url: 'none' },
    passThrough: {
      allow: [{ path: '/**', methods: ['GET', 'HEAD', 'OPTIONS', 'POST', 'PUT', 'PATCH', 'DELETE'] }],
    },
    partners: [
      {
        ...{ id: 'recorded', match: { any: true }, clients: 'open', stage: 'legacy' },
        ...{ v3: { callsPerSecond: 'none' }, record: { to: out, maxBytes: maxSize, ...form } },
      },
    ],
  })
  // To record is what this process is for: on a busy machine, too, nothing is dropped for clients' sake.
  const app = createApp(config, { logLevel: 'error', backgroundNice: 0 })
  const stopping = untilSignal()
  const ends = forMs === undefined ? [] : [AbortSignal.timeout(forMs)]
  try {
    const { url } = await app.listen()
    if (json !== true) console.log(`record ready ${url}`)
    await once(AbortSignal.any([stopping.signal, ...ends]), 'abort')
  } finally {
    stopping.stop()
    await app.close()
  }
  const metrics = await app.metrics()
  const counts = metrics.flatMap((metric) => fateCounts.safeParse(metric).data?.values ?? [])
  return countFates((fate) => counts.find(({ labels }) => labels.fate === fate)?.value ?? 0)
}

function formatFates(folder: string, offered: number, fates: Fates): string {
  const { recorded, dropped, unfit, tooLarge, stopped } = fates
  const others = { dropped, unfit, 'too large': tooLarge, 'after recording stopped': stopped }
  return [
    `${recorded} of ${offered} exchange(s) recorded in ${folder}`,
    ...Object.entries(others).flatMap(([what, count]) => (count > 0 ? [`  ${what}: ${count}`] : [])),
  ].join('\n')
}
