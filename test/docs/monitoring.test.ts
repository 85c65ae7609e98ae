import { execFileSync, spawnSync } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'

import { describe, expect, it, test } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'

import { journalFile } from '../e2e/support/journal-file.ts'
import { startAdapter } from '../support/start-adapter.ts'

const deploy = fileURLToPath(new URL('../../deploy/', import.meta.url))
const read = (name: string): Promise<string> => readFile(`${deploy}${name}`, 'utf8')

interface Rules {
  readonly groups: readonly {
    readonly rules: readonly { readonly alert: string; readonly expr: string; readonly labels: object }[]
  }[]
}
interface Dashboard {
  readonly panels: readonly {
    readonly type: string
    readonly targets?: readonly { readonly expr: string }[]
  }[]
}

async function expressions(): Promise<string[]> {
  const { groups } = parse(await read('alerts.yaml')) as Rules
  const { panels } = JSON.parse(await read('dashboard.json')) as Dashboard
  return [
    ...groups.flatMap(({ rules }) => rules.map(({ expr }) => expr)),
    ...panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr)),
  ]
}

/** Returns the labels of each metric according to docs/metrics.md. */
async function documentedLabels(): Promise<Map<string, string[]>> {
  const text = await readFile(new URL('../../docs/metrics.md', import.meta.url), 'utf8')
  const rows = text.matchAll(/^\| `(markbridge_\w+)` \| ([^|]*) \|/gm)
  return new Map(
    [...rows].map(([, name = '', labels = '']) => [name, labels.split(',').map((one) => one.trim())]),
  )
}

const toMetric = (name: string): string => name.replace(/_(?:bucket|count|sum)$/, '')

describe('the monitoring configuration in deploy', () => {
  it('uses only metrics that a running adapter shows', async () => {
    const adapter = await startAdapter('http://127.0.0.1:1', { journal: { url: journalFile().url } })
    const { text } = await adapter.request('GET', '/metrics')
    const shown = new Set([...text.matchAll(/^# TYPE (\w+) /gm)].map(([, name]) => name))
    const all = await expressions()
    const named = all.flatMap((one) => one.match(/\b(?:markbridge|nodejs|process)_\w+/g) ?? []).map(toMetric)
    expect(new Set(named).size).toBeGreaterThan(20)
    expect(named.filter((name) => !shown.has(name))).toEqual([])
  })

  it('selects metrics only by labels that the metrics have', async () => {
    const labels = await documentedLabels()
    const selections = (await expressions()).flatMap((one) => [
      ...one.matchAll(/(markbridge_\w+)\{([^}]*)\}/g),
    ])
    expect(selections.length).toBeGreaterThan(10)
    for (const [whole, name = '', matchers = ''] of selections) {
      const chosen = [...matchers.matchAll(/(\w+)\s*[=!]~?/g)].map(([, label]) => label)
      expect(labels.get(toMetric(name)), whole).toEqual(expect.arrayContaining(chosen))
    }
  })

  it('groups metrics only by labels that the metrics have', async () => {
    const labels = await documentedLabels()
    for (const expression of await expressions()) {
      const names = [...expression.matchAll(/\bmarkbridge_\w+/g)].map(([name]) => toMetric(name))
      const known = ['le', 'instance', ...names.flatMap((name) => labels.get(name) ?? [])]
      const groups = [...expression.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, list = '']) =>
        list.split(/, */),
      )
      expect(known, expression).toEqual(expect.arrayContaining(groups))
    }
  })

  it('has an expression for every panel and a severity for every alert', async () => {
    const { panels } = JSON.parse(await read('dashboard.json')) as Dashboard
    expect(panels.filter(({ type, targets = [] }) => type !== 'row' && targets.length === 0)).toEqual([])
    const { groups } = parse(await read('alerts.yaml')) as Rules
    const severities = groups.flatMap(({ rules }) => rules.map(({ labels }) => labels))
    expect(severities).toEqual(
      severities.map(() => ({ severity: expect.stringMatching(/^(?:page|ticket)$/) as string })),
    )
  })

  it('passes the checks of promtool, together with the metrics of an adapter', async ({ skip }) => {
    if (spawnSync('promtool', ['--version']).error !== undefined) {
      console.warn(
        'SKIPPED: promtool checks deploy/alerts.yaml and /metrics (Debian: apt-get install prometheus).',
      )
      skip()
    }
    expect(
      execFileSync('promtool', ['check', 'rules', `${deploy}alerts.yaml`], { encoding: 'utf8' }),
    ).toContain('SUCCESS')
    const adapter = await startAdapter('http://127.0.0.1:1', { journal: { url: journalFile().url } })
    const { text } = await adapter.request('GET', '/metrics')
    const { status, stdout, stderr } = spawnSync('promtool', ['check', 'metrics'], {
      input: text,
      encoding: 'utf8',
    })
    expect({ status, said: stdout + stderr }).toEqual({ status: 0, said: '' })
  })
})

test('podmonitor.yaml scrapes the pods of kubernetes.yaml', async () => {
  const documents = parseAllDocuments(await read('kubernetes.yaml')).map((one) => one.toJS() as Deployment)
  const pod = documents.find(({ kind }) => kind === 'Deployment')?.spec.template
  const { spec } = parse(await read('podmonitor.yaml')) as PodMonitor
  expect(pod?.metadata.labels).toMatchObject(spec.selector.matchLabels)
  const ports = pod?.spec.containers.flatMap((one) => one.ports.map(({ name }) => name))
  expect(ports).toEqual(expect.arrayContaining(spec.podMetricsEndpoints.map(({ port }) => port)))
})

interface Deployment {
  readonly kind: string
  readonly spec: {
    readonly template: {
      readonly metadata: { readonly labels: object }
      readonly spec: {
        readonly containers: readonly { readonly ports: readonly { readonly name: string }[] }[]
      }
    }
  }
}
interface PodMonitor {
  readonly spec: {
    readonly selector: { readonly matchLabels: object }
    readonly podMetricsEndpoints: readonly { readonly port: string }[]
  }
}
