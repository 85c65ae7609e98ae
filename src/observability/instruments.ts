import { Counter, Histogram, type Registry } from 'prom-client'

/** Creates instruments in one registry; their names begin with `markbridge_`. */
export interface Instruments {
  readonly counter: <Label extends string>(name: string, help: string, labelNames: Label[]) => Counter<Label>
  /** `name` without its unit: seconds. */
  readonly histogram: <Label extends string>(
    name: string,
    help: string,
    labelNames: Label[],
  ) => Histogram<Label>
}

const seconds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 90]

/** Creates the instruments of a registry. */
export function createInstruments(registry: Registry): Instruments {
  const registers = [registry]
  return {
    counter: (name, help, labelNames) =>
      new Counter({ name: `markbridge_${name}`, help, labelNames, registers }),
    histogram: (name, help, labelNames) =>
      new Histogram({ name: `markbridge_${name}_seconds`, help, labelNames, buckets: seconds, registers }),
  }
}

/** `2xx`, `4xx` and so on; 429 has a class of its own, since the service's rate limit causes it and not the request. */
export function statusClass(status: number): string {
  return status === 429 ? '429' : `${Math.floor(status / 100)}xx`
}
