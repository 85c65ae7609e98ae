import { type Command, InvalidArgumentError } from 'commander'

import type { SendOptions } from '../run-send.ts'

const examples = `
The file is the body of a batch or a whole HTTP request, as check reads it; - reads standard input. Of a request, the body and
its Content-Type are sent. Each part of the reply is printed when it arrives. A terminal shows a progress bar with the rate and the
time left; otherwise standard error gets one line for every second without a new part. Ctrl+C stops waiting and prints the
outcomes received so far; the adapter finishes the batch.

Examples:
  markbridge send fixtures/class-register/body.txt --to http://127.0.0.1:8080
  markbridge send request.http --to 'http://127.0.0.1:8080/some/prefix/V2/Attendance/$batch' --json
  MARKBRIDGE_SUBSCRIPTION_KEY=… MARKBRIDGE_TOKEN=… markbridge send body.txt --to https://adapter.example

Credentials are read from MARKBRIDGE_SUBSCRIPTION_KEY and MARKBRIDGE_TOKEN; the default is the sandbox's.
Exit status: 0 when every record was accepted; 1 when a record was refused, not applied or unknown, or has no answer (the whole
batch was refused, the ids differ, the reply was cut off, Ctrl+C); 2 for wrong usage or an unreadable file.`

/** Adds `send <batch-file> --to <url>`: posts a batch as a V2 client does. */
export function addSend(command: Command, exitWith: (status: number) => void): void {
  command
    .argument('<batch-file>')
    .requiredOption('--to <url>', 'base address of the adapter, or the full address of $batch', readAddress)
    .option('--boundary <text>', 'boundary for the Content-Type (default: the first delimiter of the file)')
    .option('--json', 'print one JSON document when the reply has ended')
    .addHelpText('after', examples)
    .action(async (path: string, options: SendOptions) => {
      const { runSend } = await import('../run-send.ts')
      exitWith(await runSend(path, options))
    })
}

function readAddress(text: string): URL {
  if (!URL.canParse(text) || !/^https?:$/.test(new URL(text).protocol))
    throw new InvalidArgumentError('It must be an http or https address.')
  const url = new URL(text)
  if (/\/(?:\$|%24)batch\/?$/i.test(url.pathname)) return url
  return new URL(`${url.href.replace(/\/+$/, '')}/V2/Attendance/$batch`)
}
