import { type DestinationStream, type Logger, pino, stdTimeFunctions } from 'pino'

/**
 * Creates the structured logger (JSON lines on standard error, so that standard output keeps to ready lines and results).
 * Nothing but `events.ts` writes to it: what may appear in a log is the list of fields there, not what a redaction misses.
 * `worker` is the number of one of several processes whose lines come together.
 */
export function createLogger(level: string, destination?: DestinationStream, worker?: number): Logger {
  const base = { name: 'markbridge', ...(worker === undefined ? {} : { worker }) }
  const options = { level, base, timestamp: stdTimeFunctions.isoTime }
  // Written in blocks, at the latest after 250 ms and at exit: a write for each batch cost a fifteenth of the hot path.
  const buffered = { dest: 2, sync: false, minLength: 12_288, periodicFlush: 250 }
  return pino(options, destination ?? pino.destination(buffered))
}
