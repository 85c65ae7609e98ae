import type { Command } from 'commander'

import { batchLimitsOf, toMapping } from '../../app/partners.ts'
import { AdapterError } from '../../errors.ts'
import {
  type InspectedRecording,
  inspectRecording,
  type InspectSettings,
} from '../recordings/inspect-recording.ts'
import { kindOf } from '../recordings/open-recording.ts'
import { findRecordings, type RecordedFiles } from '../recordings/read-recordings.ts'
import { findPartner, loadOffline } from '../target.ts'
import { formatCounted, formatGivenText, formatJson } from '../text.ts'

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
      exitWith(await runCheck(path, options))
    })
}

/** The flags of `check`. */
interface CheckOptions {
  readonly boundary?: string
  readonly config?: string
  readonly partner?: string
  readonly findings?: boolean
  readonly json?: boolean
}

/** Checks the recordings of a path, prints what was found, and returns the exit status. */
async function runCheck(path: string, options: CheckOptions): Promise<number> {
  const settings = await readSettings(options)
  const found = await findRecordings(path)
  const all = await checkAll(found, settings, options)
  if (found.isFolder) printFolder(path, all, options.json === true)
  return all.status
}

async function readSettings({ boundary, config, partner }: CheckOptions): Promise<InspectSettings> {
  if (config === undefined && partner !== undefined)
    throw new AdapterError('ADP_USAGE', '--partner names a partner of --config: give both.')
  const loaded = await loadOffline(config)
  const chosen = findPartner(loaded, partner)
  const { serviceHosts, v3 } = chosen
  return {
    limits: batchLimitsOf(loaded),
    serviceHosts: serviceHosts === undefined ? undefined : new Set(serviceHosts),
    mapping: toMapping(chosen),
    bodyProfile: v3.bodyProfile,
    boundary,
  }
}

interface Checked {
  readonly checked: readonly CheckedFile[]
  readonly skipped: readonly SkippedFile[]
  readonly status: number
}

/** Checks one file after the other, and prints each result at once unless all go into one document. */
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
    if (json !== true) console.log(formatGivenText(`${file}: skipped, ${reason}`))
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
        // The files of a folder are summed up at the end; only the document needs their records.
        checked.push(json === true ? file : { ...file, records: [] })
        if (file.findings.some(({ severity }) => severity === 'error')) status = Math.max(status, 1)
        if (json !== true) printFile(file, !isFolder && findings !== true)
        else if (!isFolder) console.log(formatJson(toDocument(file)))
      }
    } catch (cause) {
      if (!isFolder || !(cause instanceof AdapterError)) throw cause
      skip(name, cause.message)
      status = 2
    }
  }
  return { checked, skipped, status }
}

/** The counts of a folder, as its last line or with all files in one document. */
function printFolder(path: string, { checked, skipped }: Checked, asJson: boolean): void {
  if (checked.length === 0)
    throw new AdapterError(
      'ADP_USAGE',
      `The folder ${path} has no recording: no HTTP request and no body of a batch.`,
    )
  const refused = checked.filter(({ sound }) => !sound).length
  const accepted = checked.filter(({ findings }) =>
    findings.every(({ severity }) => severity !== 'error'),
  ).length
  const partlyRefused = checked.length - accepted - refused
  if (asJson) {
    const counts = { recordings: checked.length, accepted, partlyRefused, refused, skipped: skipped.length }
    console.log(formatJson({ folder: path, files: checked.map(toDocument), skipped, summary: counts }))
    return
  }
  console.log(
    `${formatCounted(checked.length, 'recording')}: ${accepted} accepted, ${partlyRefused} refused in part, ${refused} refused as a whole` +
      (skipped.length === 0 ? '' : `; ${formatCounted(skipped.length, 'other file')} skipped`),
  )
}

/** One checked file. */
interface CheckedFile extends InspectedRecording {
  readonly file: string
}

/** A file of a folder that was not checked, and why. */
interface SkippedFile {
  readonly file: string
  readonly reason: string
}

/** One file as an object for programs. */
function toDocument({ records, findings, ...file }: CheckedFile): object {
  return {
    ...file,
    records: records.map(({ v3, ...line }) => ({
      ...line,
      v3: v3 === null ? null : (JSON.parse(v3) as unknown),
    })),
    findings: findings.map((finding, index) => ({ number: index + 1, ...finding })),
  }
}

/** One file as text; `withRecords` adds a line for each record. */
function printFile(checked: CheckedFile, withRecords: boolean): void {
  const { file, bytes, sound, records, changesets, findings } = checked
  const content = sound
    ? `${records.length} records in ${changesets ?? 0} changeset(s)`
    : 'refused: nothing of it would be posted'
  printLine(`${file === '-' ? 'standard input' : file}: ${bytes} bytes, ${content}`)
  for (const { part, contentId, v3 } of withRecords ? records : []) {
    const id = contentId === null ? '' : ` (Content-ID ${contentId})`
    printLine(`part ${part}${id}: ${v3 ?? 'refused, see findings'}`)
  }
  if (findings.length === 0) printLine('no findings')
  findings.forEach((finding, index) => {
    const offset = finding.offset === undefined ? '' : ` at offset ${finding.offset}`
    const part = finding.part === undefined ? '' : ` in part ${finding.part}`
    printLine(`${index + 1}. ${finding.severity} ${finding.code}${part}${offset}: ${finding.message}`)
    printLine(`   remedy: ${finding.remedy}`)
  })
}

/** Names and values of a recording are others' text. */
function printLine(line: string): void {
  console.log(formatGivenText(line))
}
