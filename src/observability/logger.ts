import { Writable } from 'node:stream'
import { isatty } from 'node:tty'

import { type DestinationStream, type Logger, pino } from 'pino'

import { AdapterError } from '../errors.ts'
import { createLineWriter, type LineWriter } from './line-writer.ts'

export type { Logger }

const levels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']

/**
 * Creates the logger, which writes JSON lines to standard error. Standard output is for ready lines and results. All log lines except the
 * count of dropped lines come from `events.ts`, whose types list the values that a line may contain. Redaction of finished lines would find
 * only leaks that are already known.
 * `worker` is the number of the process if several processes share the output. Throws `ADP_CONFIGURATION` for an unknown level.
 */
export function createLogger(level: string, destination?: DestinationStream, worker?: number): Logger {
  if (!levels.includes(level))
    throw new AdapterError(
      'ADP_CONFIGURATION',
      `The log level (MARKBRIDGE_LOG_LEVEL) must be one of ${levels.join(', ')}. Nothing was started. Correct it, or unset it for ${levels[2]}.`,
    )
  const base = { name: 'markbridge', ...(worker === undefined ? {} : { worker }) }
  const options = { level, base, timestamp: pino.stdTimeFunctions.isoTime }
  const logger = pino(options, destination ?? openStandardError())
  onRecovered = (lines) => logger.warn({ lines }, 'log lines dropped')
  return logger
}

/** Opens standard error for log lines as readable text, with colours if it is a terminal. */
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

/** Returns the number of log lines that this process dropped because standard error did not accept them. */
export function droppedLogLines(): number {
  return standardError?.droppedLines() ?? 0
}

function openStandardError(): LineWriter {
  if (standardError !== undefined) return standardError
  const writer = createLineWriter(2, (lines) => onRecovered(lines))
  process.once('exit', writer.flushAtExit)
  return (standardError = writer)
}

/** The process has only one writer, so that log lines stay in order. */
let standardError: LineWriter | undefined
let onRecovered: (lines: number) => void = () => undefined
