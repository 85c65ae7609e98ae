import { previewRefusal, previewReply } from '../../app/console/preview-reply.ts'
import { batchLimitsOf, toMapping } from '../../app/partners.ts'
import type { Config, PartnerConfig } from '../../config/index.ts'
import type { TriedBatch, TriedReply } from '../../console/ports.ts'
import { AdapterError, errorRules } from '../../errors.ts'
import { inspectRecording, type InspectedRecording, refusesRequest } from '../recordings/inspect-recording.ts'
import { openRecording } from '../recordings/open-recording.ts'
import { findPartner } from '../target.ts'

/** Tries a recorded batch of a partner, as `markbridge check` does. Error: `ADP_USAGE` for a partner that the file does not have. */
export async function tryBatch(config: Config, partner: string, file: Buffer): Promise<TriedBatch> {
  const own = findPartner(config, partner)
  const { serviceHosts, v3 } = own
  const inspected = await inspectRecording(file, {
    limits: batchLimitsOf(config),
    serviceHosts: serviceHosts === undefined ? undefined : new Set(serviceHosts),
    mapping: toMapping(own),
    bodyProfile: v3.bodyProfile,
    boundary: undefined,
  })
  const { bytes, sound, records, findings } = inspected
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
    reply: await replyTo(inspected, config, own, file),
  }
}

async function replyTo(
  { sound, findings }: InspectedRecording,
  config: Config,
  own: PartnerConfig,
  file: Buffer,
): Promise<TriedReply | undefined> {
  if (sound) {
    const { headers, body } = await openRecording(file, config.limits.maxBodyBytes)
    return body && previewReply(config, own, headers, body)
  }
  const refusal = findings.find(refusesRequest)
  return refusal && isKnown(refusal.code)
    ? previewRefusal(new AdapterError(refusal.code, refusal.message))
    : undefined
}

const isKnown = (code: string): code is keyof typeof errorRules => Object.hasOwn(errorRules, code)
