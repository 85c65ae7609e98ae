import { type Events, framesOf } from '../../observability/events.ts'

/** An error of a comparison as the log has it: without its message, which may quote a value. */
export function toInternalError(cause: unknown): Parameters<Events['internalError']>[0] {
  return cause instanceof Error
    ? { errorName: cause.name, stack: framesOf(cause) }
    : { errorName: 'comparison thread ended', stack: [] }
}
