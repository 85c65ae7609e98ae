import type { InspectedRecording } from './recordings/inspect-recording.ts'
import { formatGivenText } from './text-table.ts'

/** One checked file. */
export interface CheckedFile extends InspectedRecording {
  readonly file: string
}

/** A file of a folder that was not checked, and why. */
export interface SkippedFile {
  readonly file: string
  readonly reason: string
}

/** The counts of a folder. */
export interface CheckSummary {
  readonly recordings: number
  /** Without an error. */
  readonly accepted: number
  /** Some of their records would be refused. */
  readonly partlyRefused: number
  readonly refused: number
  readonly skipped: number
}

/** Counts the results of the files of a folder. */
export function summarise(files: readonly CheckedFile[], skipped: readonly SkippedFile[]): CheckSummary {
  const refused = files.filter(({ sound }) => !sound).length
  const accepted = files.filter(({ findings }) =>
    findings.every(({ severity }) => severity !== 'error'),
  ).length
  return {
    recordings: files.length,
    accepted,
    partlyRefused: files.length - accepted - refused,
    refused,
    skipped: skipped.length,
  }
}

/** One file as an object for programs. */
export function toDocument({ records, findings, ...file }: CheckedFile): object {
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
export function printFile(checked: CheckedFile, withRecords: boolean): void {
  const { file, bytes, sound, records, changesets, findings } = checked
  const content = sound
    ? `${records.length} records in ${changesets ?? 0} changeset(s)`
    : 'refused: nothing of it would be posted'
  print(`${file === '-' ? 'standard input' : file}: ${bytes} bytes, ${content}`)
  for (const { part, contentId, v3 } of withRecords ? records : []) {
    const id = contentId === null ? '' : ` (Content-ID ${contentId})`
    print(`part ${part}${id}: ${v3 ?? 'refused, see findings'}`)
  }
  if (findings.length === 0) print('no findings')
  findings.forEach((finding, index) => {
    const offset = finding.offset === undefined ? '' : ` at offset ${finding.offset}`
    const part = finding.part === undefined ? '' : ` in part ${finding.part}`
    print(`${index + 1}. ${finding.severity} ${finding.code}${part}${offset}: ${finding.message}`)
    print(`   remedy: ${finding.remedy}`)
  })
}

/** Names and values of a recording are others' text. */
function print(line: string): void {
  console.log(formatGivenText(line))
}

/** The last line for a folder. */
export function printSummary({ recordings, accepted, partlyRefused, refused, skipped }: CheckSummary): void {
  const count = `${recordings} recording${recordings === 1 ? '' : 's'}`
  console.log(
    `${count}: ${accepted} accepted, ${partlyRefused} refused in part, ${refused} refused as a whole` +
      (skipped === 0 ? '' : `; ${skipped} other file${skipped === 1 ? '' : 's'} skipped`),
  )
}
