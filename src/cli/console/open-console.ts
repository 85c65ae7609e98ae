import { request } from 'undici'
import * as z from 'zod'

import { openConsoleData, type OpenedConsoleData } from '../../app/console/open-console-data.ts'
import { previewRefusal, previewReply } from '../../app/console/preview-reply.ts'
import { shareDescriptors } from '../../app/descriptors.ts'
import { highWaterFileOf } from '../../app/stages.ts'
import { backgroundClock } from '../../clock.ts'
import { openRuns } from '../../compare/run/read-runs.ts'
import {
  certificateOf,
  type Config,
  type ConsoleConfig,
  journalKeysOf,
  journalUrlOf,
  type PartnerConfig,
} from '../../config/index.ts'
import type { ConsoleData } from '../../console/data/port.ts'
import type { ComparisonDesk, ConsolePorts, TriedBatch, TriedReply } from '../../console/ports.ts'
import { createConsole } from '../../console/server.ts'
import { AdapterError, errorRules } from '../../errors.ts'
import { replaceCertificate } from '../../http/secure-server.ts'
import { startListening, urlOf } from '../../http/server.ts'
import { createEvents, framesOf } from '../../observability/events.ts'
import type { Logger } from '../../observability/logger.ts'
import { type OpenedRolloutStore, openRolloutStore } from '../../rollout/store/rollout-store.ts'
import {
  type InspectedRecording,
  inspectRecording,
  inspectSettingsOf,
  refusesRequest,
} from '../recordings/inspect-recording.ts'
import { openRecording } from '../recordings/open-recording.ts'
import { readLiveResults } from '../rollout/describe-partner.ts'
import { operatorsOf, readStageFile, systemUser } from '../rollout/open-store.ts'
import { findPartner } from '../target.ts'
import { explainRecord } from './explain.ts'
import { createStageDesk } from './stage-desk.ts'

type ConsoleSource = ConsoleData & Pick<OpenedConsoleData, 'readKept'> & Partial<Pick<ConsolePorts, 'health'>>

interface OpenedConsole {
  readonly url: string
  /** A URL with which the user of the operating system can sign in once, or `undefined` if the configuration names operators. */
  readonly link: string | undefined
  /** Replaces the certificate of the listener with the certificate in the current configuration. */
  readonly renewCertificate: () => void
  readonly close: () => Promise<void>
}

/**
 * Opens the configured console. The stages have a separate database connection, so that the console does not compete with clients.
 * `current` returns the configuration of the latest reload. `given` is the adapter's data if the adapter runs in this process. Throws
 * `ADP_CONFIGURATION` if there is no journal or the port is in use.
 */
export async function openConsole(
  settings: ConsoleConfig,
  current: () => Config,
  logger: Logger,
  given: ConsoleSource | undefined,
  sandbox?: string,
): Promise<OpenedConsole> {
  const { journal } = current()
  const events = createEvents(logger)
  const own =
    given === undefined
      ? openConsoleData({ journal, clock: backgroundClock, onFailure: () => events.consoleFailed() })
      : undefined
  const data = given ?? own
  const database = {
    url: journalUrlOf(journal),
    keys: journalKeysOf(journal),
    highWaterFile: highWaterFileOf(journal),
  }
  if (data === undefined)
    throw new AdapterError(
      'ADP_CONFIGURATION',
      'The console needs a journal, but journal.url is none. Nothing was started. Set journal.url, or start without the console.',
    )
  const stopping = new AbortController()
  const store = createOpenOnce<OpenedRolloutStore>(async () =>
    openRolloutStore(database, (await readStageFile({ journal }))?.view?.trail),
  )
  const { server, createLink } = createConsole({
    settings,
    operators: () => operatorsOf(current()),
    systemUser: systemUser(),
    nowMs: Date.now,
    maxConnections: shareDescriptors(current())?.console,
    onError: (error) => events.internalError(describeError(error)),
    ports: {
      stages: createStageDesk(current, store.open, stopping.signal),
      comparison: createComparisonDesk(settings.runs, current, store.open),
      data,
      health: given?.health,
      sandbox: sandbox === undefined ? undefined : createSandboxControl(sandbox),
      tryBatch: (partner, file) => tryBatch(current(), partner, file),
      explain: (batch, position, isRevealed) =>
        explainRecord(data, current(), { batch, position, isRevealed }),
    },
  })
  const port = await startListening(server, settings.port, settings.host, '--console')
  const url = urlOf({ ...settings, port })
  const link = createLink()
  return {
    url,
    link: link === undefined ? undefined : `${url}${link}`,
    renewCertificate: () => replaceCertificate(server, certificateOf(current().console?.tls)),
    close: async () => {
      stopping.abort()
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
      await Promise.all([store.close(), own?.close()])
    },
  }
}

/** Creates a resource that is opened on first use. If an attempt to open it fails, the next use tries again. */
function createOpenOnce<Opened extends { close(): Promise<void> }>(open: () => Promise<Opened>) {
  let opened: Promise<Opened> | undefined
  return {
    open: (): Promise<Opened> => {
      opened ??= open().catch((cause: unknown) => {
        opened = undefined
        throw cause
      })
      return opened
    },
    close: async (): Promise<void> => {
      const own = await opened?.catch(() => undefined)
      await own?.close()
    },
  }
}

const describeError = (error: unknown) => {
  const cause = error instanceof AdapterError && error.cause instanceof Error ? error.cause : error
  return {
    errorName: cause instanceof Error ? cause.name : typeof cause,
    stack: cause instanceof Error ? framesOf(cause) : [],
  }
}

/**
 * The maximum size of a run document in bytes. It has room for 5,000 classes of differences, which take 0.1 s to read in the process that
 * serves clients.
 */
const MAX_BYTES = 524_288

function createComparisonDesk(
  folder: string,
  config: () => Config,
  openStore: () => Promise<OpenedRolloutStore>,
): ComparisonDesk {
  const runs = openRuns(folder, MAX_BYTES)
  return {
    runs: () => runs.list(),
    run: (id) => runs.read(id),
    live: async (partner) => readLiveResults(config(), await openStore(), partner),
  }
}

/** Checks a recorded batch with the settings of a partner, like `markbridge check`. */
async function tryBatch(config: Config, partner: string, file: Buffer): Promise<TriedBatch> {
  const own = findPartner(config, partner)
  const inspected = await inspectRecording(file, inspectSettingsOf(config, own, undefined))
  const { bytes, sound, records, findings } = inspected
  return {
    bytes,
    isSound: sound,
    isBody: file.byteLength === bytes,
    records: records.map((record) => ({
      part: record.part,
      contentId: record.contentId ?? undefined,
      v2: record.v2 ?? undefined,
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

const faults = z.array(z.object({ fault: z.unknown() })).transform((all) => all.map(({ fault }) => fault))

/**
 * Creates the functions by which the console controls a sandbox. They send no credentials, because any program on this machine may use the
 * control routes.
 */
export function createSandboxControl(url: string): NonNullable<ConsolePorts['sandbox']> {
  return {
    readFaults: async () => faults.parse(await (await request(`${url}/_sandbox/faults`)).body.json()),
    setFaults: async (wanted) => {
      const headers = { 'content-type': 'application/json' }
      const put = { method: 'PUT', body: JSON.stringify(wanted), headers } as const
      await (await request(`${url}/_sandbox/faults`, put)).body.dump()
    },
  }
}
