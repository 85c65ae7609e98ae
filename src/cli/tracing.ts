import { readEnvironment } from '../config/index.ts'
import { openTracing, type Tracing } from '../observability/tracing.ts'

/** Opens tracing, or returns `undefined` if the environment names no collector. Reports only the first failure to send traces. */
export async function openConfiguredTracing(): Promise<Tracing | undefined> {
  const { otlpEndpoint } = readEnvironment()
  if (otlpEndpoint === undefined) return undefined
  let isReported = false
  return openTracing(() => {
    if (!isReported)
      console.error(
        'markbridge: warning: traces cannot be sent to the collector, so these traces are lost. The adapter continues. Check OTEL_EXPORTER_OTLP_ENDPOINT.',
      )
    isReported = true
  })
}
