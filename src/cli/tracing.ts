import { readEnvironment } from '../config/index.ts'
import { openTracing, type Tracing } from '../observability/tracing.ts'

/** Opens the traces where the environment names a collector; undefined elsewhere. A failure to send them is reported once. */
export async function openConfiguredTracing(): Promise<Tracing | undefined> {
  const { otlpEndpoint } = readEnvironment()
  if (otlpEndpoint === undefined) return undefined
  let isReported = false
  return openTracing(() => {
    if (!isReported)
      console.error(
        'markbridge: warning: traces cannot be sent to the collector; the adapter goes on without it',
      )
    isReported = true
  })
}
