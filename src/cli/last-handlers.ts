/**
 * Keeps the process running after a rejection or an exception that no code handles, because one unexpected reply must not end all other
 * exchanges. `report` logs the cause, and fails the request or background work that it belongs to. Install the handlers once the service
 * accepts requests, so that an earlier fault ends the start.
 */
export function keepServing(report: (cause: unknown) => void): void {
  const handle = (cause: unknown): void => {
    try {
      report(cause)
    } catch {
      // If `report` itself throws, the cause is lost. An exception that left this handler would end the process.
    }
  }
  process.on('unhandledRejection', handle).on('uncaughtException', handle)
}
