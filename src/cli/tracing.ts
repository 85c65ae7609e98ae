import { readEnvironment } from '../config/index.ts'
import { openTracing, type Tracing } from '../observability/tracing.ts'

/** Returns `undefined` if the environment names no collector. Reports the first failure to send traces. */
export async function openConfiguredTracing(): Promise<Tracing | undefined> {
  const { otlpEndpoint } = readEnvironment()
  if (otlpEndpoint === undefined) return undefined
  let isReported = false
  return openTracing(() => {
    if (!isReported)
      console.error(
        'markbridge: warning: traces cannot be sent to the collector, and are lost. The adapter continues',
      )
    isReported = true
  })
}
