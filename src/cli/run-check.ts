import { toMapping } from '../app/partners.ts'
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
import { formatGivenText, formatJson } from './text-table.ts'

/** The flags of `check`. */
export interface CheckOptions {
  readonly boundary?: string
  readonly config?: string
  readonly partner?: string
  readonly findings?: boolean
  readonly json?: boolean
}

/** Checks the recordings of a path, prints what was found, and returns the exit status. */
export async function runCheck(path: string, options: CheckOptions): Promise<number> {
  const settings = await readSettings(options)
  const found = await findRecordings(path)
  const { checked, skipped, status } = await checkAll(found, settings, options)
  if (found.isFolder) printFolder(path, checked, skipped, options.json === true)
  return status
}

async function readSettings({ boundary, config, partner }: CheckOptions): Promise<InspectSettings> {
  if (config === undefined && partner !== undefined)
    throw new AdapterError('ADP_USAGE', '--partner names a partner of --config: give both.')
  // Without a file: the default limits, and the settings of a partner without any of its own.
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
  if (asJson) console.log(formatJson({ folder: path, files: checked.map(toDocument), skipped, summary }))
  else printSummary(summary)
}
