import { Counter, Gauge, Histogram, type Registry } from 'prom-client'

const seconds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 90]

/** The label names of a metric, each with its possible values. `unlisted` means that the values are not known in advance. */
type Labels = Readonly<Record<string, readonly string[]>>
/** The list for label values that are not known in advance, such as the ids of partners. */
export const unlisted: readonly string[] = []

type Series<All extends Labels> = { readonly [Label in keyof All]: All[Label][number] }

/**
 * The value of a gauge: one number, or one row for each combination of label values. An empty list means that the gauge has no value now.
 */
type GaugeReading<Label extends string> = number | readonly GaugeRow<Label>[]
type GaugeRow<Label extends string> = Readonly<Record<Label, string>> & { readonly value: number }

/** Creates functions that add metrics to a registry. The names of all metrics begin with `markbridge_`. */
export function createInstruments(registry: Registry) {
  const registers = [registry]
  const begins: ((partner: string) => void)[] = []
  return {
    /** Creates a counter, and returns a function that adds to one of its series. Series with listed label values exist from the start. */
    counter: <const All extends Labels>(name: string, help: string, labels: All) => {
      const labelNames = Object.keys(labels)
      const made = new Counter({ name: `markbridge_${name}`, help, labelNames, registers })
      const begin = (partner?: string): void => {
        for (const series of combine({ ...labels, ...(partner && { partner: [partner] }) }))
          made.inc(series, 0)
      }
      if ('partner' in labels) begins.push(begin)
      else if (labelNames.length > 0) begin()
      return (fields: Series<All>, count = 1): void => made.inc(seriesOf(labelNames, fields), count)
    },
    /** Creates the series of a partner with the value 0. Otherwise Prometheus would miss the first increase of each series. */
    begin: (partner: string): void => {
      for (const begin of begins) begin(partner)
    },
    /**
     * Creates a histogram of durations, which callers give in milliseconds. The metric is in seconds, and its name gets the suffix
     * `_seconds`.
     */
    timer: <const All extends Labels>(name: string, help: string, labels: All) => {
      const labelNames = Object.keys(labels)
      const settings = { name: `markbridge_${name}_seconds`, help, labelNames, buckets: seconds, registers }
      const made = new Histogram(settings)
      return (fields: Series<All>, ms: number): void => made.observe(seriesOf(labelNames, fields), ms / 1_000)
    },
    /**
     * Adds a gauge that is read when the metrics are rendered. If the read fails, the gauge has no value. `shared` means that all processes
     * of an adapter have the same value, so that their values are not added up.
     */
    gauge: <const Label extends string = never>(
      name: string,
      help: string,
      read: () => GaugeReading<Label> | Promise<GaugeReading<Label>>,
      { labels = [], shared = false }: { readonly labels?: readonly Label[]; readonly shared?: boolean } = {},
    ): void => {
      const gauge = new Gauge<string>({
        name: `markbridge_${name}`,
        help,
        labelNames: labels,
        registers,
        aggregator: shared ? 'first' : 'sum',
        collect: async () => {
          const reading = await Promise.resolve()
            .then(read)
            .catch(() => [])
          // Removes series whose label values no longer occur.
          gauge.reset()
          if (typeof reading === 'number') gauge.set(reading)
          else for (const { value, ...series } of reading) gauge.set(series, value)
        },
      })
    },
  }
}
export type Instruments = ReturnType<typeof createInstruments>

/**
 * Returns the values of the labels. Drops other members of `fields`, which prom-client would reject as unknown labels. The method `labels`
 * of prom-client is not used, because it creates functions at each call.
 */
function seriesOf(
  labelNames: readonly string[],
  fields: Readonly<Record<string, string>>,
): Record<string, string> {
  const series: Record<string, string> = {}
  for (const label of labelNames) series[label] = fields[label] ?? ''
  return series
}

/** Returns all combinations of label values, or none if the values of a label are unlisted. */
function combine(labels: Labels): Record<string, string>[] {
  return Object.entries(labels).reduce<Record<string, string>[]>(
    (rows, [label, values]) => values.flatMap((value) => rows.map((row) => ({ ...row, [label]: value }))),
    [{}],
  )
}

export const statusClasses: readonly string[] = ['2xx', '3xx', '4xx', '429', '5xx']

/**
 * Returns the class of a status, such as `2xx`, or `none` if there is no reply. 429 is a class of its own, because the rate limit causes
 * it.
 */
export function statusClass(status: number | undefined): string {
  if (status === undefined) return 'none'
  return status === 429 ? '429' : `${Math.floor(status / 100)}xx`
}
