import type { Command } from 'commander'

import { toMapping } from '../app/to-mapping.ts'
import { loadConfig, parseConfig, type PartnerConfig } from '../config/index.ts'
import { AdapterError } from '../errors.ts'
import { defaultBatchLimits } from '../v2/index.ts'
import {
  type CheckedFile,
  printFile,
  printSummary,
  type SkippedFile,
  summarise,
  toDocument,
} from './check-report.ts'
import { inspectRecording, type InspectSettings } from './recordings/inspect-recording.ts'
import { findRecordings, type RecordedFiles } from './recordings/read-recordings.ts'
import { kindOf } from './recordings/recorded-bytes.ts'

const examples = `
A recording is the body of a batch as send takes it, or a whole HTTP request with its head: request line, headers, blank
line, body (also in chunks or compressed). In a folder other files, such as recorded replies, are listed as skipped; symbolic
links to files are read, those to folders, pipes and devices are skipped. Offsets count from the start of the decompressed body.

Examples:
  markbridge check fixtures/class-register/body.txt
  markbridge check request.http --json
  markbridge check recordings/
  curl -s https://files.example/batch.txt | markbridge check -
  markbridge check body.txt --boundary batch_36522ad7-fc75-4b56-8c71-56071383e77b
  markbridge check recordings/ --config markbridge.yaml --partner acme

Exit status: 0 when the adapter would accept every record, 1 when it would refuse one or a whole batch, 2 for wrong usage or
a file that cannot be read.`

interface CheckOptions {
  readonly boundary?: string
  readonly config?: string
  readonly partner?: string
  readonly findings?: boolean
  readonly json?: boolean
}

/** Adds `check <batch file>`: decodes recordings offline, and says what would be posted and what is wrong. */
export function addCheck(program: Command, exitWith: (status: number) => void): void {
  program
    .command('check <file-or-folder>')
    .description(
      'decode a batch offline: its records, the V3 records they become, and numbered findings with a remedy; - reads standard input',
    )
    .option('--boundary <text>', 'boundary of the Content-Type it would be sent with')
    .option('--config <file>', 'decide by the limits and the partner of this configuration')
    .option('--partner <id>', 'the partner of --config that sends it (default: the first)')
    .option('--findings', 'print the findings only; a folder is always printed so')
    .option('--json', 'print one JSON document')
    .addHelpText('after', examples)
    .action(async (path: string, options: CheckOptions) => {
      const settings = await readSettings(options)
      const found = await findRecordings(path)
      const { checked, skipped, status } = await checkAll(found, settings, options)
      if (found.isFolder) printFolder(path, checked, skipped, options.json === true)
      exitWith(status)
    })
}

async function readSettings({ boundary, config, partner }: CheckOptions): Promise<InspectSettings> {
  if (config === undefined && partner !== undefined)
    throw new AdapterError('ADP_USAGE', '--partner names a partner of --config. Give both.')
  // Without a file: the limits of the adapter's defaults, and what a partner without settings of its own gets.
  const loaded =
    config === undefined
      ? parseConfig({ upstreams: { v3: { baseUrl: 'http://127.0.0.1' } } })
      : await loadConfig(config)
  const chosen = choosePartner(loaded.partners, partner)
  const { serviceHosts, v3 } = chosen
  return {
    limits: { ...defaultBatchLimits, ...loaded.limits },
    serviceHosts: serviceHosts === undefined ? undefined : new Set(serviceHosts),
    mapping: toMapping(chosen),
    bodyProfile: v3.bodyProfile,
    boundary,
  }
}

function choosePartner(partners: readonly PartnerConfig[], id: string | undefined): PartnerConfig {
  const chosen = id === undefined ? partners[0] : partners.find((partner) => partner.id === id)
  if (chosen !== undefined) return chosen
  const known = partners.map((partner) => partner.id).join(', ')
  throw new AdapterError('ADP_USAGE', `The configuration has no partner ${id ?? ''}. It has: ${known}.`)
}

interface Checked {
  readonly checked: readonly CheckedFile[]
  readonly skipped: readonly SkippedFile[]
  readonly status: number
}

/** Checks one file after the other, and prints each at once unless all make one document. */
async function checkAll(
  { isFolder, files }: RecordedFiles,
  settings: InspectSettings,
  { findings, json }: CheckOptions,
): Promise<Checked> {
  const checked: CheckedFile[] = []
  const skipped: SkippedFile[] = []
  let status = 0
  const skip = (file: string, reason: string): void => {
    skipped.push({ file, reason })
    if (json !== true) console.log(`${file}: skipped, ${reason}`)
  }
  for (const { name, read, skip: reason } of files) {
    if (reason !== undefined) {
      skip(name, reason)
      continue
    }
    try {
      const bytes = await read()
      const kind = kindOf(bytes)
      if (isFolder && kind === 'reply') skip(name, 'an HTTP reply')
      else if (isFolder && kind === 'else') skip(name, 'neither an HTTP request nor the body of a batch')
      else {
        const file: CheckedFile = { file: name, ...(await inspectRecording(bytes, settings)) }
        if (isFolder && file.findings.some(({ code }) => code === 'ADP_NOT_FOUND')) {
          skip(name, 'an HTTP request that is not for $batch')
          continue
        }
        // Of a folder all files are summed up at the end; their records are needed for the document only.
        checked.push(json === true ? file : { ...file, records: [] })
        if (file.findings.some(({ severity }) => severity === 'error')) status = Math.max(status, 1)
        if (json !== true) printFile(file, !isFolder && findings !== true)
        else if (!isFolder) console.log(JSON.stringify(toDocument(file), null, 2))
      }
    } catch (cause) {
      if (!isFolder || !(cause instanceof AdapterError)) throw cause
      skip(name, cause.message)
      status = 2
    }
  }
  return { checked, skipped, status }
}

function printFolder(
  path: string,
  checked: readonly CheckedFile[],
  skipped: readonly SkippedFile[],
  asJson: boolean,
): void {
  if (checked.length === 0)
    throw new AdapterError(
      'ADP_USAGE',
      `The folder ${path} has no recording: no HTTP request and no body of a batch.`,
    )
  const summary = summarise(checked, skipped)
  if (asJson)
    console.log(JSON.stringify({ folder: path, files: checked.map(toDocument), skipped, summary }, null, 2))
  else printSummary(summary)
}
