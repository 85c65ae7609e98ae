import { Counter, Histogram, type Registry } from 'prom-client'

const seconds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 90]

/** Creates instruments in one registry; their names begin with `markbridge_`. */
export function createInstruments(registry: Registry) {
  const registers = [registry]
  const begins: ((partner: string) => void)[] = []
  return {
    /** `values`: the values of all labels but `partner`, where they are few and known: these series are there from the start. */
    counter: <Label extends string>(
      name: string,
      help: string,
      labelNames: Label[],
      values?: Readonly<Partial<Record<Label, readonly string[]>>>,
    ): Counter<Label> => {
      const made = new Counter({ name: `markbridge_${name}`, help, labelNames, registers })
      const begin = (partner?: string): void => {
        for (const labels of combine(labelNames, { ...values, ...(partner && { partner: [partner] }) }))
          made.inc(labels, 0)
      }
      if (labelNames.some((label) => label === 'partner')) begins.push(begin)
      else if (labelNames.length > 0) begin()
      return made
    },
    /** Begins the series of a partner at 0: the increase of one that appears with its first count cannot be seen. */
    begin: (partner: string): void => {
      for (const begin of begins) begin(partner)
    },
    /** `name` without its unit: seconds. */
    histogram: <Label extends string>(name: string, help: string, labelNames: Label[]): Histogram<Label> =>
      new Histogram({ name: `markbridge_${name}_seconds`, help, labelNames, buckets: seconds, registers }),
  }
}
export type Instruments = ReturnType<typeof createInstruments>

/** Each combination of values; none where those of a label are not known. */
function combine<Label extends string>(
  labelNames: readonly Label[],
  values: Readonly<Partial<Record<string, readonly string[]>>>,
): Partial<Record<Label, string>>[] {
  return labelNames.reduce<Partial<Record<Label, string>>[]>(
    (rows, label) =>
      (values[label] ?? []).flatMap((value) => rows.map((row) => ({ ...row, [label]: value }))),
    [{}],
  )
}

/** What `statusClass` returns for the status of a reply. */
export const statusClasses: readonly string[] = ['2xx', '3xx', '4xx', '429', '5xx']

/** `2xx`, `4xx` and so on; 429 has a class of its own, since the service's rate limit causes it and not the request. */
export function statusClass(status: number): string {
  return status === 429 ? '429' : `${Math.floor(status / 100)}xx`
}
