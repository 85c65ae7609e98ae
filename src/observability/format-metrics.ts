import { setImmediate as nextTurn } from 'node:timers/promises'

import type { Registry } from 'prom-client'

/** Series that are formatted in one turn of the event loop: a few milliseconds. */
const SERIES_PER_TURN = 2_000

/** The text of metrics as `Registry.metrics` has it, which holds the event loop for a third of a second with those of 1,000 partners. */
export async function formatMetrics(
  metrics: Awaited<ReturnType<Registry['getMetricsAsJSON']>>,
): Promise<string> {
  const texts: string[] = []
  let left = SERIES_PER_TURN
  for (const { name, help, type, values } of metrics) {
    const lines = [`# HELP ${name} ${escapeText(help)}`, `# TYPE ${name} ${type}`]
    for (const one of values) {
      lines.push(formatSeries('metricName' in one ? String(one.metricName) : name, one.labels, one.value))
      left -= 1
      if (left > 0) continue
      await nextTurn()
      left = SERIES_PER_TURN
    }
    texts.push(lines.join('\n'))
  }
  return `${texts.join('\n\n')}\n`
}

function formatSeries(name: string, labels: Readonly<Record<string, unknown>>, value: number): string {
  const parts = Object.entries(labels).map(
    ([label, of]) => `${label}="${escapeText(String(of)).replaceAll('"', '\\"')}"`,
  )
  const series = parts.length === 0 ? name : `${name}{${parts.join()}}`
  return `${series} ${Math.abs(value) === Infinity ? `${value < 0 ? '-' : '+'}Inf` : value}`
}

const escapeText = (text: string): string => text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')
