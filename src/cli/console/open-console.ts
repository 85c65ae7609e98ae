import { type OpenedConsoleData, openConsoleData } from '../../app/console/open-console-data.ts'
import { markFileOf } from '../../app/stages.ts'
import { backgroundClock } from '../../clock.ts'
import { type Config, type ConsoleConfig, journalKeysOf, journalUrlOf } from '../../config/index.ts'
import type { ConsoleData } from '../../console/data/port.ts'
import { createConsole } from '../../console/server.ts'
import { AdapterError } from '../../errors.ts'
import { startListening } from '../../http/server.ts'
import { createEvents, framesOf } from '../../observability/events.ts'
import type { Logger } from '../../observability/logger.ts'
import { type OpenedRolloutStore, openRolloutStore } from '../../rollout/store/rollout-store.ts'
import { operatorsOf, readStateFile, systemUser } from '../rollout/open-store.ts'
import { createComparisonDesk } from './comparison-desk.ts'
import { explainRecord } from './explain.ts'
import { createSandboxControl } from './sandbox-control.ts'
import { createStageDesk } from './stage-desk.ts'
import { tryBatch } from './try-batch.ts'

/** What pages ask of the journal, and the requests that explain a record. */
type ConsoleSource = ConsoleData & Pick<OpenedConsoleData, 'readKept'>

/** A console that answers. */
interface OpenedConsole {
  readonly url: string
  /** Signs in the user of the system, once; undefined where operators have tokens. */
  readonly link: string | undefined
  readonly close: () => Promise<void>
}

/**
 * Opens the console that the configuration asks for. Its stages have a connection of their own, so that it asks nothing of what serves
 * clients. `current` is the configuration as it was reloaded last; `given` is the data of the adapter where it runs in this process. Error: `ADP_CONFIGURATION` for a port that is taken.
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
  const database = { url: journalUrlOf(journal), keys: journalKeysOf(journal), markFile: markFileOf(journal) }
  if (data === undefined)
    throw new AdapterError(
      'ADP_CONFIGURATION',
      'The console shows what a journal knows, and the configured journal is none.',
    )
  const stopping = new AbortController()
  const store = createOpenOnce<OpenedRolloutStore>(async () =>
    openRolloutStore(database, (await readStateFile({ journal }))?.view?.trail),
  )
  const { server, createLink } = createConsole({
    settings,
    operators: () => operatorsOf(current()),
    systemUser: systemUser(),
    nowMs: Date.now,
    onError: (error) => events.internalError(describeError(error)),
    ports: {
      stages: createStageDesk(current, store.open, stopping.signal),
      comparison: createComparisonDesk(settings.runs, store.open),
      data,
      sandbox: sandbox === undefined ? undefined : createSandboxControl(sandbox),
      tryBatch: (partner, file) => tryBatch(current(), partner, file),
      explain: (batch, position, isRevealed) =>
        explainRecord(data, current(), { batch, position, isRevealed }),
    },
  })
  const port = await startListening(server, settings.port, settings.host, '--console')
  const url = `http://${settings.host.includes(':') ? `[${settings.host}]` : settings.host}:${port}`
  const link = createLink()
  return {
    url,
    link: link === undefined ? undefined : `${url}${link}`,
    close: async () => {
      stopping.abort()
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
      await Promise.all([store.close(), own?.close()])
    },
  }
}

/** Opens something when it is first needed, and again after that has failed. */
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
