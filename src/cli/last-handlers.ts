/**
 * Keeps the process serving after a rejection or an exception that no code handles: an odd reply that one exchange stumbles over must not
 * end all the others, at every start again. `report` logs the cause and fails the work that it belongs to. Install the handlers once the
 * service accepts requests: a fault before that ends the start.
 */
export function keepServing(report: (cause: unknown) => void): void {
  const handle = (cause: unknown): void => {
    try {
      report(cause)
    } catch {
      // An exception of this handler would end the process after all.
    }
  }
  process.on('unhandledRejection', handle).on('uncaughtException', handle)
}
