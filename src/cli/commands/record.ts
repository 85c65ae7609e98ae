import { once } from 'node:events'

import type { Command } from 'commander'

import { type AppOverrides, createApp } from '../../app.ts'
import { MAX_EXCHANGE_BYTES } from '../../compare/recording/exchange.ts'
import {
  createRecorder,
  openRecordingStore,
  type RecordingStore,
} from '../../compare/recording/recording-store.ts'
import { exchangeKinds, keptFieldsOf, type WireExchange } from '../../compare/wire-exchange.ts'
import { parseConfig } from '../../config/index.ts'
import { AdapterError, describeFileError } from '../../errors.ts'
import { readRecordingKey } from '../files.ts'
import { readBase, readPort, readSize, readTime } from '../options.ts'
import { untilSignal } from '../signals.ts'
import { type Answer, answerWith } from '../text.ts'

const examples = `
Forwards every request to V2 unchanged, and stores exchanges with marks and
registrations as files, one folder each. Credentials are never stored. Point a
client at the printed address; V3 and a journal are not needed.

Examples:
  markbridge record --v2 https://v2.example --out ./recordings \\
    --key env:RECORDING_KEY --for 4h --max-size 500MB
  markbridge check ./recordings --key env:RECORDING_KEY
  markbridge compare run --recording ./recordings --key env:RECORDING_KEY

--key encrypts each file with AES-256-GCM: 32 bytes, as openssl rand -hex 32
prints them, from env:NAME or file:path. SIGINT and SIGTERM end the command.
Exit status: 0 done; 1 recording stopped, such as with a full disk; 2 wrong
usage or key.`

export function addRecord(command: Command, exitWith: (status: number) => void): void {
  command
    .requiredOption('--v2 <url>', 'address of V2', readBase)
    .requiredOption('--out <dir>', 'folder that the recordings are written to')
    .requiredOption('--key <source>', 'encrypt the recordings with the key of env:NAME or file:path')
    .option('--host <host>', 'address to listen on', '127.0.0.1')
    .option('--port <n>', 'port to listen on', readPort, 8080)
    .option(
      '--max-size <size>',
      'maximum size of the folder, such as 500MB; the oldest are deleted',
      readSize,
      1_000_000_000,
    )
    .option('--for <time>', 'end after this time, such as 10m or 24h', readTime)
    .option('--json', 'print one JSON document at the end')
    .addHelpText('after', examples)
    .action(answerWith(exitWith, runRecord))
}

interface RecordOptions {
  readonly v2: URL
  readonly out: string
  readonly key: string
  readonly host: string
  readonly port: number
  readonly maxSize: number
  /** The duration of the recording in milliseconds, or `undefined` if only a signal ends the command. */
  readonly for?: number
  readonly json?: boolean
}

type Recorder = ReturnType<typeof createRecorder>
type Fates = Awaited<ReturnType<Recorder['end']>>

async function runRecord(options: RecordOptions): Promise<Answer> {
  const { out } = options
  const recorder = createRecorder(await openStore(options), (cause) =>
    console.error(
      `markbridge: recording has stopped: ${describeFileError(cause)}. Requests are still forwarded to V2, but no further exchange is recorded. Correct the cause and start the command again.`,
    ),
  )
  await relay(options, recorder)
  const fates = await recorder.end()
  const offered = Object.values(fates).reduce((sum, count) => sum + count, 0)
  return {
    document: { folder: out, offered, ...fates },
    text: () => formatFates(out, offered, fates),
    status: fates.stopped === 0 ? 0 : 1,
  }
}

/** Opens the folder before the first exchange, so that a missing write permission is reported at the start. */
async function openStore({ out, maxSize, key: source }: RecordOptions): Promise<RecordingStore> {
  const key = await readRecordingKey(source)
  try {
    return await openRecordingStore({ folder: out, key, maxBytes: maxSize, nowMs: Date.now })
  } catch (cause) {
    throw new AdapterError(
      'ADP_USAGE',
      `${out} cannot be written: ${describeFileError(cause)}. Nothing was recorded. Name another folder with --out.`,
      { cause },
    )
  }
}

/** The timeout for the response of V2, which may need minutes for a batch. */
const TIMEOUTS = { headersMs: 600_000 }

/** Runs an adapter at stage `legacy`. The address of V2 is also set as the address of V3, so that every request goes to V2. */
async function relay({ v2, host, port, for: forMs, json }: RecordOptions, recorder: Recorder): Promise<void> {
  const side = { baseUrl: v2.href, timeouts: TIMEOUTS }
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
        v3: { callsPerSecond: 'none' },
      },
    ],
  })
  const app = createApp(config, { logLevel: 'error', recorder: recordWith(recorder) })
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
}

/** Matches the routes of marks and of all registrations. The path before the match identifies an installation and is not recorded. */
const ROUTE = /\/v2\/(?:attendance\/|learnerregistr?ations(?:\(\))?\/?$)/i

/** Passes each exchange with marks or registrations to the recorder once the reply of V2 is complete. */
const recordWith =
  ({ offer }: Recorder): NonNullable<AppOverrides['recorder']> =>
  ({ request, target, kind: asked, receivedMs }) => {
    const kind = exchangeKinds.find((one) => one === asked)
    const { rawPath, query } = target
    const from = rawPath.search(ROUTE)
    if (kind === undefined || request.method === 'HEAD' || from === -1) return undefined
    const give = (body: Buffer | undefined, reply: WireExchange['reply'] | undefined): void => {
      if (reply === undefined) return
      const durationMs = Date.now() - receivedMs
      offer({
        ...{ kind, target: rawPath.slice(from) + query, reply, receivedMs, durationMs },
        request: { fields: keptFieldsOf({ fields: request.rawHeaders }), body },
      })
    }
    return {
      copyBytes: MAX_EXCHANGE_BYTES,
      record: ({ outcome }) => {
        if (outcome?.kind === 'read') give(Buffer.alloc(0), outcome.reply)
        else if (outcome?.kind === 'relayed' && outcome.outcome.kind === 'answered')
          give(outcome.body, outcome.outcome.reply)
      },
    }
  }

function formatFates(folder: string, offered: number, fates: Fates): string {
  const { recorded, dropped, tooLarge, stopped } = fates
  const others = { dropped, 'too large': tooLarge, 'after recording stopped': stopped }
  return [
    `${recorded} of ${offered} exchange(s) recorded in ${folder}`,
    ...Object.entries(others).flatMap(([what, count]) => (count > 0 ? [`  ${what}: ${count}`] : [])),
  ].join('\n')
}
