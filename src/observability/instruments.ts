import { Counter, Gauge, Histogram, type Registry } from 'prom-client'

const seconds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 90]

/** The labels of a metric, each with its values where they are few and known, else `unlisted`. */
type Labels = Readonly<Record<string, readonly string[]>>
/** Values that are not known before they occur, such as the ids of partners. */
export const unlisted: readonly string[] = []

/** The fields that name a series: one of the values of each label. */
type Series<All extends Labels> = { readonly [Label in keyof All]: All[Label][number] }

/** A gauge that is read when the metrics are rendered: one number, or one for each combination of label values. Empty: not available. */
type GaugeReading<Label extends string> = number | readonly GaugeRow<Label>[]
type GaugeRow<Label extends string> = Readonly<Record<Label, string>> & { readonly value: number }

/** Creates instruments in one registry; their names begin with `markbridge_`. */
export function createInstruments(registry: Registry) {
  const registers = [registry]
  const begins: ((partner: string) => void)[] = []
  return {
    /** Adds to the series that the labels name among the fields. Series of known values are there from the start. */
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
    /** Begins the series of a partner at 0: the increase of one that appears with its first count cannot be seen. */
    begin: (partner: string): void => {
      for (const begin of begins) begin(partner)
    },
    /** Observes a time in milliseconds; `name` is without its unit, seconds. */
    timer: <const All extends Labels>(name: string, help: string, labels: All) => {
      const labelNames = Object.keys(labels)
      const settings = { name: `markbridge_${name}_seconds`, help, labelNames, buckets: seconds, registers }
      const made = new Histogram(settings)
      return (fields: Series<All>, ms: number): void => made.observe(seriesOf(labelNames, fields), ms / 1_000)
    },
    /** Adds a gauge; a reading that fails counts as none. `shared`: it is the same in each process of an adapter, and not added up. */
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
          // Label values that are no longer reported must disappear.
          gauge.reset()
          if (typeof reading === 'number') gauge.set(reading)
          else for (const { value, ...series } of reading) gauge.set(series, value)
        },
      })
    },
  }
}
export type Instruments = ReturnType<typeof createInstruments>

/** The labels alone, of fields that may have more. Not `labels` of prom-client, which makes functions for each call. */
function seriesOf(
  labelNames: readonly string[],
  fields: Readonly<Record<string, string>>,
): Record<string, string> {
  const series: Record<string, string> = {}
  for (const label of labelNames) series[label] = fields[label] ?? ''
  return series
}

/** Each combination of values; none where those of a label are not known. */
function combine(labels: Labels): Record<string, string>[] {
  return Object.entries(labels).reduce<Record<string, string>[]>(
    (rows, [label, values]) => values.flatMap((value) => rows.map((row) => ({ ...row, [label]: value }))),
    [{}],
  )
}

/** What `statusClass` returns for the status of a reply. */
export const statusClasses: readonly string[] = ['2xx', '3xx', '4xx', '429', '5xx']

/**
 * `2xx`, `4xx` and so on, `none` without a reply; 429 has a class of its own, since the service's rate limit causes it and not the
 * request.
 */
export function statusClass(status: number | undefined): string {
  if (status === undefined) return 'none'
  return status === 429 ? '429' : `${Math.floor(status / 100)}xx`
}
