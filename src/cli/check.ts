import type { Command } from 'commander'

import { type RecordMapping, toV3Record } from '../translate/index.ts'
import { type Batch, type Finding, inspectBatch } from '../v2/index.ts'
import { encodeRecord } from '../v3/record/encode-record.ts'
import { readBatchFile } from './batch-file.ts'

/** What a partner without own settings gets. */
const mapping: RecordMapping = {
  attendeeType: 'Learner.Identifier',
  eventType: 'Attendance.AttendanceSession',
  codeType: 'Attendance.Lookup',
  changeProcessName: 'Markbridge',
  unmappedFields: 'report',
}

const examples = `
Examples:
  markbridge check fixtures/class-register/body.txt
  markbridge check request.http --json
  markbridge check body.txt --boundary batch_36522ad7-fc75-4b56-8c71-56071383e77b`

/** Adds `check <batch file>`: decodes a batch offline and tells what would be posted and what is wrong. */
export function addCheck(program: Command, exitWith: (status: number) => void): void {
  program
    .command('check <batch-file>')
    .description(
      'decode a batch offline: its records, the V3 records they become, and numbered findings with a remedy',
    )
    .option('--boundary <text>', 'boundary of the Content-Type it would be sent with')
    .option('--findings', 'print the findings only')
    .option('--json', 'print one JSON document')
    .addHelpText('after', examples)
    .action(async (path: string, options: { boundary?: string; findings?: boolean; json?: boolean }) => {
      const { body, contentType } = await readBatchFile(path, options.boundary)
      const { batch, findings } = inspectBatch(body, contentType)
      const records = batch === undefined ? [] : toLines(batch)
      if (options.json === true) printJson(path, body, batch, records, findings)
      else printText(path, body, batch, options.findings === true ? [] : records, findings)
      exitWith(findings.some(({ severity }) => severity === 'error') ? 1 : 0)
    })
}

interface RecordLine {
  readonly part: number
  readonly contentId: string | null
  /** The V3 body, null for a record that would be refused. */
  readonly v3: string | null
}

function toLines(batch: Batch): RecordLine[] {
  const recordedOn = new Date().toISOString()
  return batch.parts.map(({ part, contentId, record }) => {
    const translated = record === undefined ? undefined : toV3Record(record, mapping, recordedOn).record
    const v3 = translated === undefined ? null : encodeRecord(translated, 'full')
    return { part, contentId: contentId ?? null, v3 }
  })
}

function printJson(
  path: string,
  body: Buffer,
  batch: Batch | undefined,
  records: readonly RecordLine[],
  findings: readonly Finding[],
): void {
  const document = {
    file: path,
    bytes: body.length,
    sound: batch !== undefined,
    idsAgree: batch?.idsAgree ?? null,
    changesets: batch?.changesets.length ?? null,
    records: records.map(({ v3, ...line }) => ({
      ...line,
      v3: v3 === null ? null : (JSON.parse(v3) as unknown),
    })),
    findings: findings.map((finding, index) => ({ number: index + 1, ...finding })),
  }
  console.log(JSON.stringify(document, null, 2))
}

function printText(
  path: string,
  body: Buffer,
  batch: Batch | undefined,
  records: readonly RecordLine[],
  findings: readonly Finding[],
): void {
  const content =
    batch === undefined
      ? 'broken: nothing of it would be posted'
      : `${batch.parts.length} records in ${batch.changesets.length} changeset(s)`
  console.log(`${path}: ${body.length} bytes, ${content}`)
  for (const { part, contentId, v3 } of records) {
    console.log(
      `part ${part}${contentId === null ? '' : ` (Content-ID ${contentId})`}: ${v3 ?? 'refused, see findings'}`,
    )
  }
  if (findings.length === 0) console.log('no findings')
  findings.forEach((finding, index) => {
    const offset = finding.offset === undefined ? '' : ` at offset ${finding.offset}`
    const part = finding.part === undefined ? '' : ` in part ${finding.part}`
    console.log(`${index + 1}. ${finding.severity} ${finding.code}${part}${offset}: ${finding.message}`)
    console.log(`   remedy: ${finding.remedy}`)
  })
}
