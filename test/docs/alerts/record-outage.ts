import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

/*
 * Records the series that Prometheus would scrape while V3 is out of service for three minutes: `npm run -s build`, then `node
 * test/docs/alerts/record-outage.ts`. The built adapter serves a client in front of the sandbox, whose faults cause the outage. The client
 * never resends a batch. The series are written to outage.json beside this file, and alerts.test.ts tests the rules with these series.
 */

const root = fileURLToPath(new URL('../../../', import.meta.url))
const STEP_S = 15
const MINUTE = 60 / STEP_S
/** The start and end of the outage, and the end of the recording, as numbers of scrapes. */
const [OUTAGE_FROM, OUTAGE_UNTIL, END] = [2 * MINUTE, 5 * MINUTE, 11 * MINUTE]
const BATCH_EVERY_MS = 5_000
const RECORDS = 30

const headers = { 'Ocp-Apim-Subscription-Key': 'sandbox', Authorization: 'Bearer sandbox' }

/** Starts a command of the program, and resolves with its address once the command is ready. */
async function start(args: readonly string[]): Promise<{ url: string; stop: () => Promise<unknown> }> {
  const child = spawn(process.execPath, [`${root}dist/cli/main.js`, ...args], {
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  let printed = ''
  child.stdout.setEncoding('utf8')
  for await (const text of child.stdout.iterator({ destroyOnReturn: false })) {
    printed += String(text)
    const [, url] = /ready (http\S+)/.exec(printed) ?? []
    if (url === undefined) continue
    child.stdout.resume()
    const stop = (): Promise<unknown> => {
      child.kill()
      return once(child, 'exit')
    }
    return { url, stop }
  }
  throw new Error(`${args[0] ?? ''} ended: ${printed}`)
}

interface Samples {
  readonly learners: readonly string[]
  readonly events: readonly string[]
  readonly codes: readonly { readonly id: string }[]
}

/** Builds a batch. Marks of the outage have their own events, so that no later mark replaces a mark that no client resent. */
function batchOf(number: number, isOutage: boolean, { learners, events, codes }: Samples): string {
  const half = events.length >> 1
  const event = events[(number % half) + (isOutage ? half : 0)]
  const parts = Array.from({ length: RECORDS }, (_, at) => {
    const mark = {
      ...{ Learner: learners[at], AttendableEvent: event, Present: true, Absent: false },
      ...{ SchoolAttendanceCode: codes[0]?.id, MinutesLate: null },
    }
    const head = ['--c', 'Content-Type: application/http', 'Content-Transfer-Encoding: binary', `Content-ID: ${at + 1}`]
    return [...head, '', 'POST AttendanceRecords HTTP/1.1', 'Content-Type: application/json', '', JSON.stringify(mark)]
  }) // prettier-ignore
  const lines = [`--b${number}`, 'Content-Type: multipart/mixed; boundary=c', '', ...parts.flat()]
  return [...lines, '--c--', `--b${number}--`, ''].join('\r\n')
}

/** Returns the names of the metrics in the alert rules, including the series of histograms such as `…_bucket`. */
async function namedMetrics(): Promise<ReadonlySet<string>> {
  const rules = await readFile(`${root}deploy/alerts.yaml`, 'utf8')
  return new Set(rules.match(/\bmarkbridge_\w+/g))
}

/** Formats values in the notation of promtool, which writes a run of equal values once. */
function toNotation(values: readonly (number | undefined)[]): string {
  const runs: { value: number | undefined; times: number }[] = []
  for (const value of values) {
    const last = runs.at(-1)
    if (last !== undefined && last.value === value) last.times += 1
    else runs.push({ value, times: 1 })
  }
  return runs
    .map(({ value, times }) => {
      const text = value === undefined ? '_' : String(value)
      return times === 1 ? text : `${text}x${value === undefined ? times : times - 1}`
    })
    .join(' ')
}

const folder = await mkdtemp(join(tmpdir(), 'markbridge-outage-'))
const sandbox = await start(['sandbox', '--port', '0'])
const journal = `sqlite:${join(folder, 'journal.db')}`
const adapter = await start(['serve', '--v3', sandbox.url, '--port', '0', '--journal', journal])
const samples = (await (await fetch(`${sandbox.url}/_sandbox/samples`)).json()) as Samples
const faults = (method: 'PUT' | 'DELETE', body?: object): Promise<unknown> =>
  fetch(`${sandbox.url}/_sandbox/faults`, {
    method,
    headers: { 'Content-Type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
const sent: Promise<unknown>[] = []
let isOutage = false
const send = (): void => {
  const type = `multipart/mixed; boundary=b${sent.length}`
  const body = batchOf(sent.length, isOutage, samples)
  const url = `${adapter.url}/partner/V2/Attendance/$batch`
  const posted = fetch(url, { method: 'POST', headers: { ...headers, 'Content-Type': type }, body })
  sent.push(posted.then((reply) => reply.text()))
}
const client = setInterval(send, BATCH_EVERY_MS)
const wanted = await namedMetrics()
const series = new Map<string, (number | undefined)[]>()
const startMs = performance.now()
for (let step = 0; step < END; step += 1) {
  await delay(Math.max(0, startMs + step * STEP_S * 1_000 - performance.now()))
  if (step === OUTAGE_FROM) await faults('PUT', { kind: 'status', status: 503, face: 'V3' })
  if (step === OUTAGE_UNTIL) await faults('DELETE')
  isOutage = step >= OUTAGE_FROM && step < OUTAGE_UNTIL
  const text = await (await fetch(`${adapter.url}/metrics`)).text()
  for (const [, name = '', labels = '', value] of text.matchAll(/^(\w+)(?:\{(.*)\})? (\S+)$/gm)) {
    if (!wanted.has(name)) continue
    const own = ['job="markbridge"', 'instance="one"', ...(labels === '' ? [] : [labels])].join()
    const key = `${name}{${own}}`
    const values = series.get(key) ?? Array<number | undefined>(step).fill(undefined)
    series.set(key, [...values, Number(value)])
  }
}
clearInterval(client)
await Promise.all(sent)
await adapter.stop()
await sandbox.stop()
await rm(folder, { recursive: true })
const recorded = {
  interval: `${STEP_S}s`,
  outage: { from: `${OUTAGE_FROM * STEP_S}s`, until: `${OUTAGE_UNTIL * STEP_S}s` },
  series: [...series].map(([name, values]) => ({ series: name, values: toNotation(values) })),
}
await writeFile(new URL('outage.json', import.meta.url), `${JSON.stringify(recorded, null, 2)}\n`)
console.log(`${series.size} series of ${END} scrapes, ${sent.length} batches`)
