import { type Command, InvalidArgumentError } from 'commander'

import { readEnvironment } from '../config/index.ts'
import { AdapterError } from '../errors.ts'
import { type Batch, decodeBatch, noBatchLimits } from '../v2/index.ts'
import { Progress } from './progress.ts'
import { contentTypeOf, openRecording } from './recordings/open-recording.ts'
import { readRecordedFile } from './recordings/read-recordings.ts'
import { kindOf } from './recordings/recorded-bytes.ts'
import { exitStatusOf, headOf, lineOf, type Outcome, summaryOf, toOutcome } from './sending/outcomes.ts'
import { postBatch, type PostedBatch } from './sending/post-batch.ts'

const examples = `
The file is the body of a batch or a whole HTTP request, as check reads it; - reads standard input. Of a request the body and
Content-Type are sent. Each part is printed as it comes. On a terminal a bar shows the parts so far, their rate and the time left;
elsewhere standard error has one line for every second without a new part. Ctrl+C ends with what is known by then; the adapter
finishes the batch.

Examples:
  markbridge send fixtures/class-register/body.txt --to http://127.0.0.1:8080
  markbridge send request.http --to 'http://127.0.0.1:8080/some/prefix/V2/Attendance/$batch' --json
  MARKBRIDGE_SUBSCRIPTION_KEY=… MARKBRIDGE_TOKEN=… markbridge send body.txt --to https://adapter.example

Credentials come from MARKBRIDGE_SUBSCRIPTION_KEY and MARKBRIDGE_TOKEN; without them those of the sandbox are sent.
Exit status: 0 when every record was accepted; 1 when one was refused, not applied or unknown, or has no answer (the whole batch was
refused, the ids differ, the reply was cut off, Ctrl+C); 2 for wrong usage or a file that cannot be read.`

interface SendOptions {
  readonly to: URL
  readonly boundary?: string
  readonly json?: boolean
}

/** Adds `send <batch file> --to <url>`: posts a batch as a V2 client does and prints each part of the reply as it comes. */
export function addSend(program: Command, exitWith: (status: number) => void): void {
  program
    .command('send <batch-file>')
    .description('post a batch as a V2 client and print the outcome of each record as it comes')
    .requiredOption('--to <url>', 'base address of the adapter, or the whole address of $batch', readAddress)
    .option(
      '--boundary <text>',
      'boundary for the Content-Type, where it is not the first delimiter of the file',
    )
    .option('--json', 'print one JSON document, once the reply has ended')
    .addHelpText('after', examples)
    .action(async (path: string, options: SendOptions) => {
      exitWith(await send(await readBatch(path, options.boundary), options))
    })
}

function readAddress(text: string): URL {
  if (!URL.canParse(text) || !/^https?:$/.test(new URL(text).protocol))
    throw new InvalidArgumentError('It must be an http or https address.')
  const url = new URL(text)
  if (/\/(?:\$|%24)batch\/?$/i.test(url.pathname)) return url
  return new URL(`${url.href.replace(/\/+$/, '')}/V2/Attendance/$batch`)
}

async function readBatch(path: string, boundary: string | undefined): Promise<PostedBatch> {
  const bytes = await readRecordedFile(path)
  if (boundary === undefined && kindOf(bytes) === 'else') {
    throw new AdapterError('ADP_USAGE', `${path} has no delimiter line. Name the boundary with --boundary.`)
  }
  const { body, contentType, findings } = await openRecording(bytes, Infinity)
  if (body === undefined) throw new AdapterError('ADP_USAGE', `${path}: ${findings.at(-1)?.message ?? ''}`)
  return { body, contentType: boundary === undefined ? contentType : contentTypeOf(boundary) }
}

async function send(batch: PostedBatch, { to, json }: SendOptions): Promise<number> {
  const parts = decodeHere(batch)?.parts
  const width = (parts ?? []).reduce(
    (widest, { contentId }) => Math.max(widest, (contentId ?? '').length),
    10,
  )
  const outcomes: Outcome[] = []
  const stopping = new AbortController()
  const stop = (): void => stopping.abort()
  process.once('SIGINT', stop).once('SIGTERM', stop)
  const progress = new Progress({
    output: process.stdout,
    status: process.stderr,
    isTerminal: process.stderr.isTTY && !readEnvironment().isDumbTerminal,
    total: parts?.length,
    nowMs: () => performance.now(),
  })
  try {
    const end = await postBatch(to, batch, stopping.signal, (part) => {
      const outcome = toOutcome(part, outcomes.length + 1)
      outcomes.push(outcome)
      const head = outcome.part === 1 ? `${headOf(width)}\n` : ''
      progress.advance(json === true ? undefined : head + lineOf(outcome, width))
    })
    progress.stop()
    const result = { outcomes, expected: parts?.length, end }
    if (json === true) printJson(outcomes, parts?.length, end === 'whole')
    else console.log(summaryOf(result).join('\n'))
    return exitStatusOf(result)
  } finally {
    progress.stop()
    process.off('SIGINT', stop).off('SIGTERM', stop)
  }
}

/** The batch as the adapter will decode it; undefined for one that it will refuse. */
function decodeHere({ body, contentType }: PostedBatch): Batch | undefined {
  try {
    return decodeBatch(body, contentType, { limits: noBatchLimits })
  } catch (cause) {
    if (cause instanceof AdapterError) return undefined
    throw cause
  }
}

function printJson(records: readonly Outcome[], expected: number | undefined, complete: boolean): void {
  console.log(JSON.stringify({ records, expected: expected ?? null, complete }, null, 2))
}
