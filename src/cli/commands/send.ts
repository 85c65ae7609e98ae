import { type Command, InvalidArgumentError } from 'commander'
import { request } from 'undici'
import * as z from 'zod'

import { SEALED } from '../../compare/recording/sealed-file.ts'
import { readEnvironment } from '../../config/environment.ts'
import { AdapterError, errorCodeOf } from '../../errors.ts'
import { hasWholeHost } from '../../http/address.ts'
import { describeConnection, isCertificate, remedyOf } from '../../http/connection-error.ts'
import { type Batch, decodeBatch, noBatchLimits, openReplyDecoding, type ReplyPart } from '../../v2/index.ts'
import { untilSignal } from '../signals.ts'
import { showProgress } from '../progress.ts'
import { contentTypeOf, kindOf, openRecording } from '../recordings/open-recording.ts'
import { readGivenFile } from '../files.ts'
import { formatGivenText, formatJson } from '../text.ts'

const examples = `
The file is the body of a batch or a whole HTTP request, as check reads it. The
name - stands for standard input. From a request, the body and its Content-Type
are sent.
Each part of the reply is printed when it arrives. For every second without a
new part, standard error gets a line with the count, the rate and the time left.
Ctrl+C stops waiting and prints the outcomes received so far; the adapter
finishes the batch.

Examples:
  markbridge send fixtures/class-register/body.txt --to http://127.0.0.1:8080
  markbridge send request.http --json \\
    --to 'http://127.0.0.1:8080/some/prefix/V2/Attendance/$batch'
  markbridge send body.txt --to http://127.0.0.1:8080 \\
    --header 'X-School: school-1'
  MARKBRIDGE_SUBSCRIPTION_KEY=… MARKBRIDGE_TOKEN=… \\
    markbridge send body.txt --to https://adapter.example

Credentials are read from MARKBRIDGE_SUBSCRIPTION_KEY and MARKBRIDGE_TOKEN. The
default is the credentials of the sandbox.
Exit status: 0 when every record was accepted; 1 when a record was refused, not
applied or unknown, or has no answer (the whole batch was refused, the ids
differ, the reply was cut off, Ctrl+C); 2 wrong usage or an unreadable file.`

export function addSend(command: Command, exitWith: (status: number) => void): void {
  command
    .argument('<batch-file>')
    .requiredOption('--to <url>', 'base address of the adapter, or the full address of $batch', readAddress)
    .option('--boundary <text>', 'boundary for the Content-Type (default: the first delimiter of the file)')
    .option(
      '--header <field>',
      'header field of the request, as "X-School: school-1"; repeatable',
      readHeader,
    )
    .option('--json', 'print one JSON document when the reply has ended')
    .addHelpText('after', examples)
    .action(async (path: string, options: SendOptions) => {
      expectNoRecording(path)
      exitWith(await send(await readBatch(path, options.boundary), options))
    })
}

function readAddress(text: string): URL {
  if (!URL.canParse(text) || !/^https?:$/.test(new URL(text).protocol))
    throw new InvalidArgumentError('The address must be http or https.')
  const url = new URL(text)
  if (url.username !== '' || url.password !== '' || !hasWholeHost(url))
    throw new InvalidArgumentError(
      'The address must not contain a user or password. Write an at sign after the host as %40.',
    )
  if (/\/(?:\$|%24)batch\/?$/i.test(url.pathname)) return url
  return new URL(`${url.href.replace(/\/+$/, '')}/V2/Attendance/$batch`)
}

/** Matches a header field, except the fields that the HTTP client sets itself. */
const HEADER =
  /^(?!connection|content-|expect|host|keep-alive|transfer-encoding|upgrade)([\w!#$%&'*+.^`|~-]+):\s*([\x20-\x7e]*)$/i

function readHeader(text: string, before: Fields = {}): Fields {
  const [, name, value = ''] = HEADER.exec(text) ?? []
  if (name === undefined)
    throw new InvalidArgumentError('The value must be a header field such as "X-School: school-1".')
  return { ...before, [name.toLowerCase()]: value.trim() }
}

type Fields = Readonly<Record<string, string>>

interface SendOptions {
  readonly to: URL
  readonly boundary?: string
  readonly header?: Fields
  readonly json?: boolean
}

async function readBatch(path: string, boundary: string | undefined): Promise<PostedBatch> {
  const bytes = await readGivenFile(path)
  const { body, contentType, findings } = await openRecording(bytes, Infinity)
  if (body !== undefined && boundary === undefined && (await kindOf(bytes)) === 'else')
    throw new AdapterError(
      'ADP_USAGE',
      `${path} has no delimiter line. Nothing was sent. Name the boundary with --boundary.`,
    )
  if (body === undefined) {
    const { message = '', remedy = '' } = findings.at(-1) ?? {}
    throw new AdapterError('ADP_USAGE', `${path}: ${message} ${remedy}`.trimEnd())
  }
  return { body, contentType: boundary === undefined ? contentType : contentTypeOf(boundary) }
}

async function send(batch: PostedBatch, { to, json, header }: SendOptions): Promise<number> {
  const parts = decodeHere(batch)?.parts
  const width = (parts ?? []).reduce(
    (widest, { contentId }) => Math.max(widest, (contentId ?? '').length),
    10,
  )
  const outcomes: Outcome[] = []
  const stopping = untilSignal()
  const progress = showProgress({ total: parts?.length, unit: 'parts', everyMs: 1_000 })
  try {
    const end = await postBatch(to, batch, header, stopping.signal, (part) => {
      const outcome = toOutcome(part, outcomes.length + 1)
      outcomes.push(outcome)
      progress.advance(outcomes.length)
      const head = outcome.part === 1 ? `${formatHeading(width)}\n` : ''
      if (json !== true) progress.print(head + formatOutcome(outcome, width))
    })
    progress.stop()
    const result = { outcomes, expected: parts?.length, end }
    const document = { records: outcomes, expected: parts?.length ?? null, complete: end === 'whole' }
    console.log(json === true ? formatJson(document) : summaryOf(result).join('\n'))
    return exitStatusOf(result)
  } finally {
    progress.stop()
    stopping.stop()
  }
}

/** Decodes a batch, or returns `undefined` if the adapter will refuse the batch. */
function decodeHere({ body, contentType }: PostedBatch): Batch | undefined {
  try {
    return decodeBatch(body, contentType, { limits: noBatchLimits })
  } catch (cause) {
    if (cause instanceof AdapterError) return undefined
    throw cause
  }
}

/** Throws `ADP_USAGE` for a recording, because V2 has already stored its marks and would store them again. */
function expectNoRecording(path: string): void {
  if (!path.endsWith(SEALED)) return
  throw new AdapterError(
    'ADP_USAGE',
    `${path} is a recording: V2 wrote its marks when it was recorded, and would write the marks again. Nothing was sent. To see what V3 would get, run markbridge check.`,
  )
}

interface Outcome {
  readonly part: number
  readonly contentId: string | null
  readonly status: number
  /** The id of the mark, or `null` if the record was not accepted. */
  readonly externalId: string | null
  readonly errors: readonly { readonly code: string; readonly message: string }[]
}

interface SendResult {
  readonly outcomes: readonly Outcome[]
  readonly expected: number | undefined
  readonly end: ReplyEnd
}

const text = z.string().catch('')
const errorsSchema = z.array(
  z.object({ ErrorCode: text, Message: text }).catch({ ErrorCode: '', Message: '' }),
)
const recordSchema = z.object({ ExternalID: z.string() })
/** The adapter wraps records in `d` for partners whose clients expect the envelope of OData V2. */
const acceptedSchema = z.union([z.object({ d: recordSchema }).transform(({ d }) => d), recordSchema])

/** Reads a part of the reply. `position` counts from 1. */
function toOutcome({ contentId, status, body }: ReplyPart, position: number): Outcome {
  const json = parseJson(body)
  const errors = errorsSchema.catch([]).parse(json)
  return {
    part: position,
    contentId: contentId ?? null,
    status,
    externalId: acceptedSchema.safeParse(json).data?.ExternalID ?? null,
    errors: errors.map(({ ErrorCode, Message }) => ({ code: ErrorCode, message: Message })),
  }
}

function parseJson(content: string): unknown {
  try {
    return JSON.parse(content)
  } catch {
    return undefined
  }
}

function exitStatusOf({ outcomes, expected, end }: SendResult): 0 | 1 {
  const isComplete =
    end === 'whole' && (expected === undefined ? outcomes.length > 0 : outcomes.length >= expected)
  return isComplete && outcomes.every(isAccepted) ? 0 : 1
}

function summaryOf({ outcomes, expected, end }: SendResult): string[] {
  if (end === 'whole' && outcomes.length === 0)
    return [
      expected === 0
        ? 'The batch contains no record.'
        : 'The reply is 200 without parts. Either the batch was empty, or the ids in its header and body differ, so that the reply hides the outcomes.',
    ]
  const accepted = outcomes.filter(isAccepted).length
  const counts = kinds.flatMap(([name, is]) => {
    const count = outcomes.filter((outcome) => !isAccepted(outcome) && is(outcome)).length
    return count === 0 ? [] : [`${count} ${name}`]
  })
  const detail = counts.length === 0 ? '' : `: ${counts.join(', ')}`
  const lines = [`${accepted} accepted, ${outcomes.length - accepted} not accepted${detail}`]
  const missing = expected === undefined ? undefined : expected - outcomes.length
  if (end !== 'whole' || (missing ?? 0) > 0) {
    const why = {
      whole: 'The reply has too few parts',
      'cut off': 'The reply was cut off',
      stopped: 'Waiting was stopped',
    }[end]
    const count = missing === undefined ? 'the other records' : `${missing} of ${expected ?? 0} records`
    lines.push(
      `${why}. The outcome of ${count} is unknown. Send the same batch again to get the results. An adapter with a journal recognises the batch if V3 serves it. V2 may write its records again.`,
    )
  } else if (outcomes.some(({ errors }) => errors.some(({ code }) => code === UNKNOWN)))
    lines.push('Some outcomes are unknown. Send the same batch again later to get these outcomes.')
  return lines
}

function isAccepted({ status }: Outcome): boolean {
  return status < 300
}

/** The kinds of outcomes other than accepted. Each outcome belongs to one kind. */
const kinds: readonly (readonly [name: string, is: (outcome: Outcome) => boolean])[] = [
  ['refused', ({ status }) => status < 500],
  ['unknown', ({ status, errors }) => isUnknown(status, errors)],
  ['not applied', ({ status, errors }) => status >= 500 && !isUnknown(status, errors)],
]

/** The error code of a record whose outcome the adapter does not know yet. */
const UNKNOWN = 'ADP_OUTCOME_UNKNOWN'

function isUnknown(status: number, errors: Outcome['errors']): boolean {
  return status === 504 || errors.some(({ code }) => code === UNKNOWN)
}

function formatHeading(width: number): string {
  return `${'part'.padStart(5)}  ${'content-id'.padEnd(width)}  status  outcome`
}

function formatOutcome({ part, contentId, status, externalId, errors }: Outcome, width: number): string {
  const outcome = externalId ?? errors.map(({ code, message }) => `${code} ${message}`).join(' | ')
  const id = formatGivenText(contentId ?? '-').padEnd(width)
  return `${String(part).padStart(5)}  ${id}  ${String(status).padEnd(6)}  ${formatGivenText(outcome)}`.trimEnd()
}

interface PostedBatch {
  readonly body: Buffer
  readonly contentType: string | undefined
}

type ReplyEnd = 'whole' | 'cut off' | 'stopped'

/** The codes of errors that occur before a connection is open, so that nothing was sent. */
const NOT_SENT = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
])

/**
 * Posts a batch as a V2 client does, and calls `onPart` for each part of the reply as it arrives. Throws `ADP_UPSTREAM_UNAVAILABLE` if no
 * connection can be opened, and `ADP_UPSTREAM_REFUSED` if the response is not a batch reply.
 */
async function postBatch(
  to: URL,
  { body, contentType }: PostedBatch,
  fields: Fields | undefined,
  signal: AbortSignal,
  onPart: (part: ReplyPart) => void,
): Promise<ReplyEnd> {
  const { subscriptionKey, token } = readEnvironment()
  const headers = {
    ...(contentType === undefined ? {} : { 'content-type': contentType }),
    'ocp-apim-subscription-key': subscriptionKey ?? 'sandbox',
    authorization: `bearer ${token ?? 'sandbox'}`,
    ...fields,
  }
  try {
    const reply = await request(to, {
      method: 'POST',
      headers,
      body,
      headersTimeout: 0,
      bodyTimeout: 0,
      signal,
    })
    if (reply.statusCode !== 200) throw refusal(reply.statusCode, await reply.body.text())
    const decoding = openDecoding(String(reply.headers['content-type']))
    for await (const chunk of reply.body as AsyncIterable<Buffer>) decoding.push(chunk).forEach(onPart)
    decoding.end().forEach(onPart)
    return 'whole'
  } catch (cause) {
    return endOf(cause, to, signal)
  }
}

function openDecoding(contentType: string): ReturnType<typeof openReplyDecoding> {
  try {
    return openReplyDecoding(contentType)
  } catch (cause) {
    const message =
      'The reply is 200, but not a batch reply (multipart/mixed). The outcomes are unknown. Check that --to is the address of an adapter.'
    throw new AdapterError('ADP_UPSTREAM_REFUSED', message, { cause })
  }
}

function endOf(cause: unknown, to: URL, signal: AbortSignal): ReplyEnd {
  if (signal.aborted) return 'stopped'
  if (cause instanceof AdapterError) {
    if (cause.code === 'ADP_TRUNCATED') return 'cut off'
    throw cause
  }
  // A connection error has a code. An error without a code is a bug.
  const code = errorCodeOf(cause)
  if (code === undefined) throw cause
  if (code === 'UND_ERR_INVALID_ARG')
    throw new AdapterError(
      'ADP_USAGE',
      `${describeConnection(cause)}. Nothing was sent. ${remedyOf(cause)}`,
      {
        cause,
      },
    )
  if (NOT_SENT.has(code) || isCertificate(code))
    throw new AdapterError(
      'ADP_UPSTREAM_UNAVAILABLE',
      `${to.origin} cannot be reached: ${describeConnection(cause)}. Nothing was sent. ${remedyOf(cause)}`,
      { cause },
    )
  return 'cut off'
}

const refusalSchema = z
  .object({
    error: z
      .object({ code: text, message: text, details: z.array(z.object({ target: text })).catch([]) })
      .optional()
      .catch(undefined),
    message: z.string().optional().catch(undefined),
  })
  .catch({})

function refusal(status: number, content: string): AdapterError {
  const { error, message } = refusalSchema.parse(parseJson(content))
  const words = error === undefined ? (message ?? content) : `${error.code} ${error.message}`
  const place = error?.details[0]?.target ?? ''
  const where = place === '' ? '' : ` (${place})`
  return new AdapterError(
    'ADP_UPSTREAM_REFUSED',
    `The whole batch was answered ${status}: ${formatGivenText(words.trim() + where)}`,
  )
}
