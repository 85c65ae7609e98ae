import { isatty } from 'node:tty'

import { type DestinationStream, type Logger, pino } from 'pino'

export type { Logger }

/**
 * Creates the structured logger (JSON lines on standard error; standard output is for ready lines and results).
 * Only `events.ts` writes to it: the fields there are an allow-list, where a redaction would be a list of known leaks.
 * `worker` is the number of the process when several of them share the output.
 */
export function createLogger(level: string, destination?: DestinationStream, worker?: number): Logger {
  const base = { name: 'markbridge', ...(worker === undefined ? {} : { worker }) }
  const options = { level, base, timestamp: pino.stdTimeFunctions.isoTime }
  return pino(options, destination ?? (standardError ??= openStandardError()))
}

/** Opens lines for people on standard error, in colour on a terminal: time, level, message and fields. */
export async function openTextLines(): Promise<DestinationStream> {
  const { default: pretty } = await import('pino-pretty')
  return pretty({
    ...{ destination: 2, sync: true, colorize: isatty(2) },
    ...{ singleLine: true, translateTime: 'SYS:HH:MM:ss', ignore: 'name' },
  })
}

/** Lines are written in blocks, at the latest after 250 ms and at exit: one write per batch took a fifteenth of the hot path. */
const buffered = { dest: 2, sync: false, minLength: 12_288, periodicFlush: 250 }
/**
 * Writes what is left while the process may still wait for it: a closed pipe is noticed then. At exit pino would try to write to it for
 * ever.
 */
function openStandardError(): DestinationStream {
  const stream = pino.destination(buffered)
  process.once('beforeExit', () => {
    stream.flush()
  })
  return stream
}

/** One for the process, whose lines stay in order: each has a timer of its own, which an adapter that closes would leave behind. */
let standardError: DestinationStream | undefined
