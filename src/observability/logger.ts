import { Writable } from 'node:stream'
import { isatty } from 'node:tty'

import { type DestinationStream, type Logger, pino } from 'pino'

import { AdapterError } from '../errors.ts'
import { createLineWriter, type LineWriter } from './line-writer.ts'

export type { Logger }

/** The levels of the log, from the most lines to none. */
const levels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']

/**
 * Creates the structured logger (JSON lines on standard error; standard output is for ready lines and results).
 * Besides the number of dropped lines, only `events.ts` writes to it: the fields there are an allow-list, where a redaction would be a
 * list of known leaks. `worker` is the number of the process when several of them share the output. Error: `ADP_CONFIGURATION` for a level that
 * is none.
 */
export function createLogger(level: string, destination?: DestinationStream, worker?: number): Logger {
  if (!levels.includes(level))
    throw new AdapterError(
      'ADP_CONFIGURATION',
      `The level of the log (MARKBRIDGE_LOG_LEVEL) must be one of ${levels.join(', ')}. Nothing was started. Correct it, or leave it out for ${levels[2]}.`,
    )
  const base = { name: 'markbridge', ...(worker === undefined ? {} : { worker }) }
  const options = { level, base, timestamp: pino.stdTimeFunctions.isoTime }
  const logger = pino(options, destination ?? openStandardError())
  onRecovered = (lines) => logger.warn({ lines }, 'log lines dropped')
  return logger
}

/** Opens lines for people on standard error, in colour on a terminal: time, level, message and fields. */
export async function openTextLines(): Promise<DestinationStream> {
  const { default: pretty } = await import('pino-pretty')
  const lines = openStandardError()
  const destination = new Writable({
    decodeStrings: false,
    write: (line: string, _encoding, done) => {
      lines.write(line)
      done()
    },
  })
  return pretty({
    ...{ destination, colorize: isatty(2) },
    ...{ singleLine: true, translateTime: 'SYS:HH:MM:ss', ignore: 'name' },
  })
}

/** Returns the number of log lines of this process that standard error could not take. */
export function droppedLogLines(): number {
  return standardError?.droppedLines() ?? 0
}

function openStandardError(): LineWriter {
  if (standardError !== undefined) return standardError
  const writer = createLineWriter(2, (lines) => onRecovered(lines))
  process.once('exit', writer.flushAtExit)
  return (standardError = writer)
}

/** One for the process, so that its lines stay in order. */
let standardError: LineWriter | undefined
let onRecovered: (lines: number) => void = () => undefined
