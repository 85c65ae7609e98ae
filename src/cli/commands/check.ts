import { stat } from 'node:fs/promises'

import type { Command } from 'commander'

import { AdapterError } from '../../errors.ts'
import {
  type CheckedFolder,
  type InspectedRecording,
  inspectFolder,
  inspectRecording,
  type InspectSettings,
  inspectSettingsOf,
} from '../recordings/inspect-recording.ts'
import { readRecordedFile } from '../files.ts'
import { configOption, NO_CONFIG } from '../options.ts'
import { findPartner, loadOffline } from '../target.ts'
import { formatCounted, formatGivenText, formatJson, formatTable } from '../text.ts'

const examples = `
The file is the body of a batch as send takes it, or a whole HTTP request with
its head: request line, headers, blank line, body (also chunked or compressed).
Offsets count from the start of the decompressed body. In a folder, check reads
the first 1,000 files and counts their findings. It does not look up the ids of
learners, events and codes.

Examples:
  markbridge check fixtures/class-register/body.txt
  markbridge check request.http --json
  markbridge check body.txt --show --boundary batch_36522ad7
  curl -s https://files.example/batch.txt | markbridge check -
  markbridge check request.http --config markbridge.yaml --partner acme
  markbridge check ./recordings --key env:RECORDING_KEY

Exit status: 0 when the adapter would accept every record; 1 when it would
refuse a record or the whole batch, or when the folder contains no file; 2 for
wrong usage or an unreadable file.`

export function addCheck(command: Command, exitWith: (status: number) => void): void {
  command
    .argument('<file>', 'body of a batch, whole HTTP request, folder of either, or - for standard input')
    .option('--boundary <text>', 'boundary of the Content-Type that the batch is sent with')
    .addOption(configOption('take limits and partner settings from this file'))
    .option('--partner <id>', 'partner of --config that sends the batch (default: the first)')
    .option('--key <source>', 'open files of recordings with the key of env:NAME or file:path')
    .option('--show', 'print the V3 body of each record')
    .option('--json', 'print one JSON document')
    .addHelpText('after', examples)
    .action(async (path: string, options: CheckOptions) => {
      exitWith(await runCheck(path, options))
    })
}

interface CheckOptions {
  readonly boundary?: string
  readonly config?: string
  readonly partner?: string
  readonly key?: string
  readonly show?: boolean
  readonly json?: boolean
}

async function runCheck(path: string, options: CheckOptions): Promise<number> {
  const settings = await readSettings(options)
  if (await isFolder(path)) {
    const checked = await inspectFolder(path, settings, options.key)
    if (options.json === true) console.log(formatJson(checked))
    else for (const line of folderLines(checked)) console.log(formatGivenText(line))
    return checked.files === 0 || checked.findings.some(({ severity }) => severity === 'error') ? 1 : 0
  }
  const checked = await inspectRecording(await readRecordedFile(path, options.key), settings)
  if (options.json === true) console.log(formatJson(toDocument(path, checked)))
  else for (const line of linesOf(path, checked, options.show === true)) console.log(formatGivenText(line))
  return checked.findings.some(({ severity }) => severity === 'error') ? 1 : 0
}

async function readSettings({ boundary, config, partner }: CheckOptions): Promise<InspectSettings> {
  if (config === undefined && partner !== undefined)
    throw new AdapterError('ADP_USAGE', `--partner needs a configuration. Nothing was checked. ${NO_CONFIG}.`)
  const loaded = await loadOffline(config)
  return inspectSettingsOf(loaded, findPartner(loaded, partner), boundary)
}

function toDocument(file: string, { records, findings, ...checked }: InspectedRecording): object {
  return {
    file,
    ...checked,
    records: records.map(({ v3, ...line }) => ({
      ...line,
      v3: v3 === null ? null : (JSON.parse(v3) as unknown),
    })),
    findings: findings.map((finding, index) => ({ number: index + 1, ...finding })),
  }
}

function linesOf(
  file: string,
  { bytes, sound, records, changesets, findings }: InspectedRecording,
  show: boolean,
): readonly string[] {
  const refused = records.filter(({ v3 }) => v3 === null).length
  const content = sound
    ? `${formatCounted(records.length, 'record')} in ${formatCounted(changesets ?? 0, 'changeset')}, ${refused} refused`
    : 'refused, so no record would be posted'
  return [
    `${file === '-' ? 'standard input' : file}: ${bytes} bytes, ${content}`,
    ...(show ? records : []).map(({ part, contentId, v3 }) => {
      const id = contentId === null ? '' : ` (Content-ID ${contentId})`
      return `part ${part}${id}: ${v3 ?? 'refused, see findings'}`
    }),
    ...(records.length > refused ? [IDS_ARE_OPEN] : []),
    ...(findings.length === 0 ? ['no findings'] : []),
    ...findings.flatMap(({ severity, code, part, offset, message, remedy }, index) => {
      const place = `${part === undefined ? '' : ` in part ${part}`}${offset === undefined ? '' : ` at offset ${offset}`}`
      return [`${index + 1}. ${severity} ${code}${place}: ${message}`, `   remedy: ${remedy}`]
    }),
  ]
}

const IDS_ARE_OPEN =
  'The ids were not looked up. V3 checks that the learner, event and code exist when a record is posted.'

const isFolder = async (path: string): Promise<boolean> =>
  (await stat(path).catch(() => undefined))?.isDirectory() === true

function folderLines(checked: CheckedFolder): readonly string[] {
  const { folder, files, found, refusedFiles, records, refused, findings } = checked
  if (files === 0) return [`${folder}: the folder contains no files`]
  const bound = files < found ? ` (the first of ${formatCounted(found, 'file')} by name)` : ''
  const whole = refusedFiles === 0 ? '' : `, ${refusedFiles} refused as a whole`
  const head = `${folder}: ${formatCounted(files, 'file')}${bound}${whole}, ${formatCounted(records, 'record')}, ${refused} refused`
  const open = records > refused ? [IDS_ARE_OPEN] : []
  if (findings.length === 0) return [head, ...open, 'no findings']
  const table = formatTable(findings, [
    ['finding', ({ severity, code }) => `${severity} ${code}`],
    ['times', ({ count }) => count],
    ['files', ({ files: inFiles }) => inFiles],
    ['first in', ({ first }) => first],
  ])
  const hint = refusedFiles === 0 ? [] : ['markbridge check <file> says why a file is refused.']
  return [head, ...open, ...table.split('\n'), ...hint]
}
