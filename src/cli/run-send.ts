import { AdapterError } from '../errors.ts'
import { type Batch, decodeBatch, noBatchLimits } from '../v2/index.ts'
import { untilSignal } from './comparing/until-signal.ts'
import { showProgress } from './progress.ts'
import { expectNoRecording } from './recordings/expect-no-recording.ts'
import { contentTypeOf, openRecording } from './recordings/open-recording.ts'
import { readRecordedFile } from './recordings/read-recordings.ts'
import { kindOf } from './recordings/recorded-bytes.ts'
import { exitStatusOf, headOf, lineOf, type Outcome, summaryOf, toOutcome } from './sending/outcomes.ts'
import { postBatch, type PostedBatch } from './sending/post-batch.ts'
import { formatJson } from './text-table.ts'

/** The flags of `send`. */
export interface SendOptions {
  readonly to: URL
  readonly boundary?: string
  readonly json?: boolean
}

/** Posts the batch of a file, prints the outcome of each record, and returns the exit status. */
export async function runSend(path: string, options: SendOptions): Promise<number> {
  await expectNoRecording(path, options.to)
  return send(await readBatch(path, options.boundary), options)
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
  const stopping = untilSignal()
  const progress = showProgress({ total: parts?.length, unit: 'parts', everyMs: 1_000 })
  try {
    const end = await postBatch(to, batch, stopping.signal, (part) => {
      const outcome = toOutcome(part, outcomes.length + 1)
      outcomes.push(outcome)
      progress.advance(outcomes.length)
      const head = outcome.part === 1 ? `${headOf(width)}\n` : ''
      if (json !== true) progress.print(head + lineOf(outcome, width))
    })
    progress.stop()
    const result = { outcomes, expected: parts?.length, end }
    if (json === true) printJson(outcomes, parts?.length, end === 'whole')
    else console.log(summaryOf(result).join('\n'))
    return exitStatusOf(result)
  } finally {
    progress.stop()
    stopping.stop()
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
  console.log(formatJson({ records, expected: expected ?? null, complete }))
}
