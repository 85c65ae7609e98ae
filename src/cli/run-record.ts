import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import type { Server } from 'node:http'

import {
  createPseudonyms,
  beginInSlices,
  createRecorder,
  createRecordingTarget,
  listRecordings,
  openRecordingStore,
  readRecording,
  recordedKindOf,
  type OfferedRecording,
  type Recorder,
  type RecordFate,
} from '../compare/recording/index.ts'
import { toPartner } from '../app/partners.ts'
import { loadConfig } from '../config/index.ts'
import { AdapterError, describeFileError } from '../errors.ts'
import { createSlicing } from '../http/slices.ts'
import { startListening } from '../http/server.ts'
import { untilSignal } from './comparing/until-signal.ts'
import { createRecordingRelay } from './recordings/recording-relay.ts'
import { readRecordingKey } from './recordings/recording-key.ts'

/** The flags of `record`. */
export interface RecordOptions {
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
  readonly maxBytes: number
  readonly maxAgeMs: number
  /** Ends by itself; undefined: with a signal. */
  readonly forMs?: number
  readonly json?: boolean
}

/** Larger bodies are relayed and not recorded. */
const MAX_EXCHANGE_BYTES = 33_554_432

/** How many exchanges had which fate. */
type Fates = Record<RecordFate | 'offered', number>

/** Records exchanges with V2, or writes recordings again as pseudonyms; returns the exit status. Error: `ADP_USAGE`. */
export async function runRecord(options: RecordOptions): Promise<number> {
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
  const recorder = createRecorder({
    begin: beginInSlices(slicing),
    maxExchangeBytes: MAX_EXCHANGE_BYTES,
  })
  const partner = await defaultPartner()
  const onFate = (fate: RecordFate): void => {
    fates[fate] += 1
  }
  const offer: Offer = (exchange) => {
    fates.offered += 1
    recorder.offer({ target, partner, exchange, onFate })
  }
  if (from !== undefined) await recordAgain(from, secret, recorder, offer)
  else if (v2 !== undefined) await relayUntilStopped(v2, options, recorder, offer)
  print(options, fates)
  return failure === undefined && (from === undefined || fates.recorded > 0) ? 0 : 1
}

type Offer = (exchange: OfferedRecording['exchange']) => void

/** No configuration is read: what V3 would get follows from the default settings. */
async function defaultPartner(): Promise<ReturnType<typeof toPartner>> {
  const config = await loadConfig(undefined, { v3: 'http://127.0.0.1' })
  const [partner] = config.partners
  if (partner === undefined)
    throw new AdapterError('ADP_INTERNAL', 'The default configuration has no partner.')
  return toPartner(partner, undefined, undefined, config)
}

async function openStore({ to, maxBytes, maxAgeMs }: RecordOptions, key: Uint8Array | undefined) {
  try {
    return await openRecordingStore({ folder: to, key, maxBytes, maxAgeMs, nowMs: Date.now })
  } catch (cause) {
    throw new AdapterError('ADP_USAGE', `${to} cannot be written: ${describeFileError(cause)}.`, { cause })
  }
}

async function recordAgain(
  from: string,
  key: Uint8Array | undefined,
  recorder: Recorder,
  offer: Offer,
): Promise<void> {
  for (const folder of await listRecordings(from)) {
    offer((await readRecording(folder, key)).exchange)
    // One at a time: the queue is for traffic, and nothing of a folder is dropped.
    await recorder.idle()
  }
  await recorder.close()
}

async function relayUntilStopped(
  v2: URL,
  { host, port, percent, forMs, json }: RecordOptions,
  recorder: Recorder,
  offer: Offer,
): Promise<void> {
  const server = createRecordingRelay({
    v2,
    isRecorded: (method, target) =>
      recordedKindOf(method, target.split('?', 1)[0] ?? '') !== undefined && Math.random() * 100 < percent,
    onExchange: offer,
    maxCopyBytes: MAX_EXCHANGE_BYTES,
  })
  const used = await startListening(server, port, host)
  if (json !== true) console.log(`record ready http://${host.includes(':') ? `[${host}]` : host}:${used}`)
  const stopping = untilSignal()
  const ends = forMs === undefined ? [] : [AbortSignal.timeout(forMs)]
  await once(AbortSignal.any([stopping.signal, ...ends]), 'abort')
  stopping.stop()
  await closeServer(server)
  await recorder.close()
}

/** Requests under way finish; a second signal ends the program. */
function closeServer(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve())
    server.closeIdleConnections()
  })
}

function print({ json, to }: RecordOptions, fates: Fates): void {
  if (json === true) {
    console.log(JSON.stringify({ folder: to, ...fates }))
    return
  }
  const { offered, recorded, dropped, unfit, tooLarge, stopped } = fates
  console.log(`${recorded} of ${offered} exchange(s) recorded in ${to}`)
  const others = { dropped, unfit, 'too large': tooLarge, 'after recording stopped': stopped }
  for (const [what, count] of Object.entries(others)) if (count > 0) console.log(`  ${what}: ${count}`)
}
