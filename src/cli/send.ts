import { type Command, InvalidArgumentError } from 'commander'
import { request } from 'undici'

import { readEnvironment } from '../config/index.ts'
import { AdapterError } from '../errors.ts'
import { type DecodedReply, decodeBatchReply } from '../v2/index.ts'
import { readBatchFile } from './batch-file.ts'

const examples = `
Examples:
  markbridge send fixtures/class-register/body.txt --to http://127.0.0.1:8080
  markbridge send request.http --to 'http://127.0.0.1:8080/some/prefix/V2/Attendance/$batch' --json
  MARKBRIDGE_SUBSCRIPTION_KEY=… MARKBRIDGE_TOKEN=… markbridge send body.txt --to https://adapter.example

Credentials come from MARKBRIDGE_SUBSCRIPTION_KEY and MARKBRIDGE_TOKEN; without them those of the sandbox are sent.
Exit status: 0 when every record was accepted, 1 when one was not or its outcome is hidden.`

interface SendOptions {
  readonly to: URL
  readonly boundary?: string
  readonly json?: boolean
}

/** Adds `send <batch file> --to <url>`: posts a batch as a V2 client does and prints one line for each record. */
export function addSend(program: Command, exitWith: (status: number) => void): void {
  program
    .command('send <batch-file>')
    .description('post a batch as a V2 client and print the outcome of each record')
    .requiredOption('--to <url>', 'base address of the adapter, or the whole address of $batch', readAddress)
    .option(
      '--boundary <text>',
      'boundary for the Content-Type, where it is not the first delimiter of the file',
    )
    .option('--json', 'print one JSON document')
    .addHelpText('after', examples)
    .action(async (path: string, options: SendOptions) => {
      const { body, contentType } = await readBatchFile(path, options.boundary)
      const { replyType, bytes } = await post(options.to, contentType, body)
      const replies = decodeBatchReply(bytes, replyType).map(toLine)
      if (options.json === true) console.log(JSON.stringify({ records: replies }, null, 2))
      else printTable(replies)
      exitWith(replies.length > 0 && replies.every(({ status }) => status < 300) ? 0 : 1)
    })
}

function readAddress(text: string): URL {
  if (!URL.canParse(text)) throw new InvalidArgumentError('It must be an http or https address.')
  const url = new URL(text)
  if (/\/(?:\$|%24)batch\/?$/i.test(url.pathname)) return url
  return new URL(`${url.href.replace(/\/+$/, '')}/V2/Attendance/$batch`)
}

/** Posts the batch and collects the reply, counting parts on a terminal while a long one streams in. */
async function post(
  to: URL,
  contentType: string,
  body: Buffer,
): Promise<{ replyType: string; bytes: Buffer }> {
  const { subscriptionKey, token } = readEnvironment()
  const headers = {
    'content-type': contentType,
    'ocp-apim-subscription-key': subscriptionKey ?? 'sandbox',
    authorization: `bearer ${token ?? 'sandbox'}`,
  }
  const reply = await request(to, { method: 'POST', headers, body, headersTimeout: 0, bodyTimeout: 0 }).catch(
    (cause: unknown) => {
      throw new AdapterError(
        'ADP_UPSTREAM_UNAVAILABLE',
        `Nothing answers at ${to.origin}. Is the adapter running?`,
        { cause },
      )
    },
  )
  const chunks: Buffer[] = []
  let parts = 0
  for await (const chunk of reply.body as AsyncIterable<Buffer>) {
    chunks.push(chunk)
    parts += chunk.toString('latin1').split('HTTP/1.1 ').length - 1
    if (process.stderr.isTTY) process.stderr.write(`\r${parts} parts answered`)
  }
  if (process.stderr.isTTY) process.stderr.write('\r\u001b[K')
  const bytes = Buffer.concat(chunks)
  if (reply.statusCode !== 200) {
    throw new AdapterError(
      'ADP_UPSTREAM_REFUSED',
      `The whole batch was answered ${reply.statusCode}: ${bytes.toString('utf8')}`,
    )
  }
  return { replyType: String(reply.headers['content-type']), bytes }
}

interface ReplyLine {
  readonly part: number
  readonly contentId: string | null
  readonly status: number
  /** The id that the service gave, null for a record that was not accepted. */
  readonly externalId: string | null
  readonly errors: readonly { code: string; message: string }[]
}

function toLine(reply: DecodedReply, index: number): ReplyLine {
  const json: unknown = reply.body === '' ? null : JSON.parse(reply.body)
  const errors = Array.isArray(json)
    ? (json as { ErrorCode: string; Message: string }[]).map(({ ErrorCode, Message }) => ({
        code: ErrorCode,
        message: Message,
      }))
    : []
  const id =
    typeof json === 'object' && json !== null && 'ExternalID' in json ? String(json.ExternalID) : null
  return { part: index + 1, contentId: reply.contentId ?? null, status: reply.status, externalId: id, errors }
}

function printTable(lines: readonly ReplyLine[]): void {
  if (lines.length === 0) {
    console.log(
      'Answered 200 without parts: the outcome of each record is hidden (the ids of header and body differ), or the batch was empty.',
    )
    return
  }
  const width = Math.max(10, ...lines.map(({ contentId }) => (contentId ?? '').length))
  console.log(`${'part'.padStart(5)}  ${'content-id'.padEnd(width)}  status  outcome`)
  for (const { part, contentId, status, externalId, errors } of lines) {
    const outcome = externalId ?? errors.map(({ code, message }) => `${code} ${message}`).join(' | ')
    console.log(
      `${String(part).padStart(5)}  ${(contentId ?? '-').padEnd(width)}  ${String(status).padEnd(6)}  ${outcome}`,
    )
  }
  const accepted = lines.filter(({ status }) => status < 300).length
  console.log(`${accepted} accepted, ${lines.length - accepted} not accepted`)
}
