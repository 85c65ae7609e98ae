import { systemClock } from '../clock.ts'
import { type Config, warningsOf } from '../config/index.ts'
import { createEvents } from '../observability/events.ts'
import type { Logger } from '../observability/logger.ts'

/** Creates what logs the warnings of each configuration that is loaded, each once; `format` makes the commands in them ready to paste. */
export function createConfigWarnings(
  logger: Logger,
  workers: number,
  format: (text: string) => string,
): (config: Config) => void {
  const { configWarned } = createEvents(logger)
  const logged = new Set<string>()
  return (config) => {
    const today = new Date(systemClock.wallMs()).toISOString().slice(0, 10)
    for (const text of warningsOf(config, workers, today).filter((warning) => !logged.has(warning))) {
      logged.add(text)
      configWarned({ warning: format(text) })
    }
  }
}
