import { readdir } from 'node:fs/promises'
import { join } from 'node:path'

import { batchLimitsOf, toMapping } from '../../app/partners.ts'
import type { Config, PartnerConfig } from '../../config/index.ts'
import { errorRules } from '../../errors.ts'
import { type RecordMapping, toV3Record } from '../../translate/index.ts'
import { createSlicing, runInSlices } from '../../http/slices.ts'
import {
  type BatchLimits,
  type BatchPart,
  type Finding,
  inspectBatchInSteps,
  toFindings,
} from '../../v2/index.ts'
import { type BodyProfile, encodeRecord } from '../../v3/record.ts'
import { readRecordedFile } from '../files.ts'
import { contentTypeOf, openRecording } from './open-recording.ts'

export interface InspectSettings {
  readonly limits: BatchLimits
  /** The hosts that absolute URLs inside a batch may name, or `undefined` if any host is accepted. */
  readonly serviceHosts: ReadonlySet<string> | undefined
  readonly mapping: RecordMapping
  readonly bodyProfile: BodyProfile
  readonly boundary: string | undefined
}

/** Returns the settings of a partner for the check. `boundary` overrides the boundary in the recording. */
export function inspectSettingsOf(
  config: Config,
  partner: PartnerConfig,
  boundary: string | undefined,
): InspectSettings {
  const { serviceHosts, v3 } = partner
  return {
    limits: batchLimitsOf(config),
    serviceHosts: serviceHosts && new Set(serviceHosts),
    mapping: toMapping(partner),
    bodyProfile: v3.bodyProfile,
    boundary,
  }
}

export interface InspectedRecord {
  readonly part: number
  readonly contentId: string | null
  /** The members of the record as JSON, or `null` if the record cannot be read. */
  readonly v2: string | null
  /** The V3 body of the record, or `null` if the adapter would refuse the record. */
  readonly v3: string | null
}

export interface InspectedRecording {
  /** The size of the decompressed batch in bytes, or of the recording if the batch cannot be read. */
  readonly bytes: number
  readonly sound: boolean
  readonly idsAgree: boolean | null
  readonly changesets: number | null
  readonly records: readonly InspectedRecord[]
  readonly findings: readonly Finding[]
}

const slicing = createSlicing()
/** The fixed work per part, in bytes, which is added to the size of the part. */
const MIN_PART_WORK = 1_024

/** Finds the faults for which the adapter would refuse a batch, and the deviations for which a stricter server would refuse it. */
export async function inspectRecording(
  bytes: Buffer,
  settings: InspectSettings,
): Promise<InspectedRecording> {
  const { limits, serviceHosts, boundary } = settings
  const opened = await openRecording(bytes, limits.maxBodyBytes)
  const { body } = opened
  if (body === undefined)
    return {
      bytes: bytes.length,
      sound: false,
      idsAgree: null,
      changesets: null,
      records: [],
      findings: opened.findings,
    }
  const contentType = boundary === undefined ? opened.contentType : contentTypeOf(boundary)
  const slices = slicing.open()
  const options = { limits, ...(serviceHosts === undefined ? {} : { serviceHosts }) }
  const { batch, findings } = await runInSlices(inspectBatchInSteps(body, contentType, options), slices)
  const recordedOn = new Date().toISOString()
  const planned: ReturnType<typeof plan>[] = []
  for (const part of batch?.parts ?? []) {
    planned.push(plan(part, settings, recordedOn))
    if (slices.spend(MIN_PART_WORK + part.end - part.start)) await slices.next()
  }
  const all = [...opened.findings, ...findings, ...planned.flatMap((one) => one.findings)].sort(
    (one, other) => (one.offset ?? -1) - (other.offset ?? -1),
  )
  return {
    bytes: body.length,
    sound: batch !== undefined && !all.some(refusesRequest),
    idsAgree: batch?.idsAgree ?? null,
    changesets: batch?.changesets.length ?? null,
    records: planned.map(({ record }) => record),
    findings: all,
  }
}

const isErrorCode = (code: string): code is keyof typeof errorRules => Object.hasOwn(errorRules, code)

/** Returns true for an error for which the adapter refuses the whole request, and false for an error of a single record. */
export function refusesRequest({ severity, code }: Pick<Finding, 'severity' | 'code'>): boolean {
  return severity === 'error' && isErrorCode(code) && errorRules[code].class !== 'record'
}

function plan(
  part: BatchPart,
  { mapping, bodyProfile }: InspectSettings,
  recordedOn: string,
): { record: InspectedRecord; findings: readonly Finding[] } {
  const { record: read } = part
  const v2 =
    read === undefined ? null : JSON.stringify({ ...read, unmapped: undefined, converted: undefined })
  const line = { part: part.part, contentId: part.contentId ?? null, v2 }
  if (read === undefined) return { record: { ...line, v3: null }, findings: [] }
  const { record, faults } = toV3Record(read, mapping, recordedOn)
  if (record === undefined) return { record: { ...line, v3: null }, findings: toFindings(part, faults) }
  return { record: { ...line, v3: encodeRecord(record, bodyProfile) }, findings: [] }
}

interface CountedFinding {
  readonly severity: string
  readonly code: string
  readonly count: number
  readonly files: number
  readonly first: string
}

export interface CheckedFolder {
  readonly folder: string
  readonly files: number
  readonly found: number
  readonly refusedFiles: number
  readonly records: number
  readonly refused: number
  readonly findings: readonly CountedFinding[]
}

const MAX_FILES = 1_000

/**
 * Inspects the `request.http` files of a folder (also sealed), or all files if it has none. Reads at most 1,000 files. `key` decrypts
 * recordings.
 */
export async function inspectFolder(
  folder: string,
  settings: InspectSettings,
  key: string | undefined,
): Promise<CheckedFolder> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  const files = entries.filter((entry) => entry.isFile() && !entry.name.startsWith('.'))
  const requests = files.filter(({ name }) => /^request\.http(?:\.sealed)?$/.test(name))
  const paths = (requests.length > 0 ? requests : files).map((entry) => join(entry.parentPath, entry.name))
  const counted = new Map<string, CountedFinding>()
  let [refusedFiles, records, refused] = [0, 0, 0]
  const checked = paths.sort().slice(0, MAX_FILES)
  for (const path of checked) {
    const found = await inspectRecording(await readRecordedFile(path, key), settings)
    if (!found.sound) refusedFiles += 1
    records += found.records.length
    refused += found.records.filter(({ v3 }) => v3 === null).length
    const seen = new Set<string>()
    for (const { severity, code } of found.findings) {
      const name = `${severity} ${code}`
      const { count = 0, files: before = 0, first = path } = counted.get(name) ?? {}
      counted.set(name, { severity, code, count: count + 1, files: before + (seen.has(name) ? 0 : 1), first })
      seen.add(name)
    }
  }
  const findings = [...counted.values()].sort((one, other) => one.severity.localeCompare(other.severity))
  return { folder, files: checked.length, found: paths.length, refusedFiles, records, refused, findings }
}
