import { batchLimitsOf, toMapping } from '../../app/partners.ts'
import type { Config } from '../../config/index.ts'
import type { TriedBatch } from '../../console/ports.ts'
import { inspectRecording } from '../recordings/inspect-recording.ts'
import { findPartner } from '../target.ts'

/** Tries a recorded batch of a partner, as `markbridge check` does. Error: `ADP_USAGE` for a partner that the file does not have. */
export async function tryBatch(config: Config, partner: string, file: Buffer): Promise<TriedBatch> {
  const own = findPartner(config, partner)
  const { serviceHosts, v3 } = own
  const { bytes, sound, records, findings } = await inspectRecording(file, {
    limits: batchLimitsOf(config),
    serviceHosts: serviceHosts === undefined ? undefined : new Set(serviceHosts),
    mapping: toMapping(own),
    bodyProfile: v3.bodyProfile,
    boundary: undefined,
  })
  return {
    bytes,
    isSound: sound,
    isBody: file.byteLength === bytes,
    records: records.map((record) => ({
      part: record.part,
      contentId: record.contentId ?? undefined,
      v3: record.v3 ?? undefined,
    })),
    findings,
  }
}
