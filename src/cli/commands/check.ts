import type { Command } from 'commander'

import type { CheckOptions } from '../run-check.ts'

const examples = `
A recording is the body of a batch as send takes it, or a whole HTTP request with its head: request line, headers, blank
line, body (also chunked or compressed). In a folder, other files such as recorded replies are listed as skipped. Symbolic
links to files are followed; links to folders, pipes and devices are skipped. Offsets count from the start of the
decompressed body.

Examples:
  markbridge check fixtures/class-register/body.txt
  markbridge check request.http --json
  markbridge check recordings/
  curl -s https://files.example/batch.txt | markbridge check -
  markbridge check body.txt --boundary batch_36522ad7-fc75-4b56-8c71-56071383e77b
  markbridge check recordings/ --config markbridge.yaml --partner acme

Exit status: 0 when the adapter would accept every record, 1 when it would refuse a record or a whole batch, 2 for wrong
usage or an unreadable file.`

/** Adds `check <file-or-folder>`: decodes recordings offline. */
export function addCheck(command: Command, exitWith: (status: number) => void): void {
  command
    .argument('<file-or-folder>')
    .option('--boundary <text>', 'boundary of the Content-Type that the batch is sent with')
    .option('--config <file>', 'apply the limits and the partner settings of this configuration')
    .option('--partner <id>', 'partner of --config that sends the batch (default: the first)')
    .option('--findings', 'print the findings only; always on for a folder')
    .option('--json', 'print one JSON document')
    .addHelpText('after', examples)
    .action(async (path: string, options: CheckOptions) => {
      const { runCheck } = await import('../run-check.ts')
      exitWith(await runCheck(path, options))
    })
}
