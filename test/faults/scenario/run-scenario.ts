import { setTimeout as delay } from 'node:timers/promises'

import type { EffectEntry } from '../../../src/sandbox/control/routes.ts'
import { createRandom } from '../../../src/sandbox/random.ts'
import { startCli } from '../../cli/run-cli.ts'
import { type Checked, checkHistory } from '../check/check-history.ts'
import type { Finding } from '../check/finding.ts'
import { untilBalanced } from '../check/ledger.ts'
import { startClockSteps } from '../clocks/clocks.ts'
import { disturb } from '../disturb.ts'
import { isFinal } from '../load/history.ts'
import { createSequence, type Load, type LoadOptions, startLoad, usualLoad } from '../load/load.ts'
import type { Samples } from '../load/write.ts'
import { type FaultProxy, type FaultProxyOptions, startFaultProxy } from '../proxy/fault-proxy.ts'
import { drawFaults, type FaultShares } from '../proxy/fault.ts'
import { createForwardLog, type ForwardLog } from '../proxy/forwards.ts'
import { startServiceTimes } from '../times/service-times.ts'
import { describeOpen } from './open-records.ts'
import { pauseProcesses } from './pauses.ts'
import { type CountName, countNames, type Counts, type RunResult } from './report.ts'
import type { Scenario } from './scenario.ts'
import { settle } from './settle.ts'
import { changeStages, leaveLegacy, schoolsOf } from './stage-changes.ts'
import { startInstances } from './start-instances.ts'
import { control, startStorms } from './storms.ts'

/** The end of a run: after `forMs`, or earlier when every count that is given here has been reached. */
export interface RunBounds extends Partial<Counts> {
  readonly seed: number
  readonly forMs: number
  /** When the faults are over, every record must be final within this time, for its client and in the journal. */
  readonly settleMs: number
  /** Receives the logs of the adapters. Default: the logs are discarded. */
  readonly logFolder?: string | undefined
}

/** The number of batches that are resent when every record is final. */
const REPLAYS = 100
/** The time for late effects of background work to show after every client has its answer. */
const GRACE_MS = 1_500

/** Runs one scenario with real processes, a real store, and the sandbox as a separate process. */
export async function runScenario(scenario: Scenario, bounds: RunBounds): Promise<RunResult> {
  const { seed } = bounds
  const { onExisting = 'replace', service = [], stages, values } = scenario
  const closing: (() => Promise<unknown> | undefined)[] = []
  const drawing = (name: string): ReturnType<typeof createRandom> => createRandom(seed, name)
  try {
    const ports = stages === undefined ? ['--port', '0'] : ['--port', '0', '--v2-port', '0']
    const sandbox = startCli(['sandbox', ...ports, '--on-existing', onExisting, ...service])
    closing.push(() => sandbox.stop())
    const printed = await sandbox.until(stages === undefined ? /ready \S+\n/ : /v2 ready \S+\n/)
    const [, sandboxUrl = '', v2Url] = /ready (\S+)(?:\nsandbox v2 ready (\S+))?/.exec(printed) ?? []
    if (values !== undefined) await control(sandboxUrl, 'values', values)
    const tick = createSequence()
    const log = createForwardLog(tick)
    const times =
      scenario.changingTimes === true
        ? await startServiceTimes(sandboxUrl, drawing('service'), tick)
        : undefined
    closing.push(() => times?.stop())
    const proxies: FaultProxy[] = []
    const place = async (
      name: string,
      ports: readonly number[],
      shares: FaultShares = {},
      more: Partial<FaultProxyOptions> = {},
    ): Promise<string> => {
      const plan = drawFaults(drawing(name), shares)
      const proxy = await startFaultProxy({ targets: ports, plan, ...more })
      closing.push(() => proxy.close())
      proxies.push(proxy)
      return proxy.url
    }
    const v3 = await place('behind', [portOf(sandboxUrl)], scenario.behind, {
      onForward: log.onForward,
      ...(times === undefined ? {} : { rewrite: times.rewrite }),
    })
    const onLegacyForward = { onForward: log.onLegacyForward }
    const v2 = v2Url && (await place('behind V2', [portOf(v2Url)], stages?.behindV2, onLegacyForward))
    const instances = await startInstances(scenario, { v3, v2 }, seed, bounds.logFolder)
    closing.push(() => instances.close())
    const { supervisors, postgres, storeWay, storeUrl, damage } = instances
    if (storeWay !== undefined) proxies.push(storeWay)
    const url = await place(
      'before',
      supervisors.map(({ port }) => port),
      scenario.before,
    )
    const load = startLoad({
      ...usualLoad,
      ...scenario.load,
      ...(scenario.clients === undefined ? {} : { tokens: await issueTokens(sandboxUrl, scenario.clients) }),
      ...stagedLoad(scenario, log),
      ...{ seed, url, samples: await readSamples(sandboxUrl, scenario.lastEvents), tick },
    })
    closing.push(() => load.close())

    const storms = startStorms(sandboxUrl, scenario.storms ?? [], drawing('storms'))
    const server = postgres?.server
    const { storeLivesMs = Infinity } = scenario
    const crashServer = async (): Promise<void> => {
      await server?.crash()
      await server?.start()
    }
    const crashes =
      server === undefined || storeLivesMs === Infinity ? undefined : disturb(() => storeLivesMs, crashServer)
    const clockSteps = startClockSteps(drawing('clocks'), instances.clocks)
    const pauses = pauseProcesses(scenario, instances, sandbox.pid ?? 0, seed)
    const changes = await changeStages(scenario, instances, seed)
    closing.push(() => changes?.stop())

    const counts = (): Counts => {
      const sumOf = (name: 'kills' | 'failpoints' | 'busy' | 'recovering'): number =>
        sum(supervisors.map((each) => each.counts()[name]))
      return {
        kills: sumOf('kills'),
        failpoints: sumOf('failpoints'),
        busy: sumOf('busy'),
        recovering: sumOf('recovering'),
        pauses: pauses?.count() ?? 0,
        clockSteps: clockSteps.count() + (times?.story.length ?? 0),
        damages: damage?.count() ?? 0,
        broken: sum(proxies.map(countBroken)),
        storms: storms.count(),
        storeCrashes: crashes?.count() ?? 0,
        records: load.records(),
        replays: load.history().replays,
        changes: changes?.counts().made ?? 0,
      }
    }
    await untilOver(bounds, counts)
    for (const each of [changes, pauses, clockSteps, storms, times, crashes]) await each?.stop()
    for (const proxy of proxies) proxy.stopFaults()
    await Promise.all(supervisors.map((each) => each.stopKilling()))
    // The clients are about to resend their unfinished batches. At `legacy` the adapter knows V3's earlier answers only for a short time.
    await leaveLegacy(scenario, storeUrl)
    const check = async (): Promise<Checked> =>
      checkHistory(load.history(), (await readJson(`${sandboxUrl}/_sandbox/effects`)) as EffectEntry[], {
        oneMark: onExisting === 'conflict',
        alters: values !== undefined,
        forwards: log.forwards(),
      })
    const startedMs = performance.now()
    const untilMs = startedMs + bounds.settleMs
    await settle(load, () => isSettled(load, check), untilMs)
    const isKept = scenario.store !== 'none'
    const ledger = isKept ? await untilBalanced(supervisors[0]?.url ?? '', untilMs) : []
    const settledMs = performance.now() - startedMs
    const story = ledger.length === 0 ? '' : await describeOpen(storeUrl)
    if (isKept && damage === undefined) await load.replayLast(REPLAYS)
    await delay(GRACE_MS)
    const { writes } = load.history()
    const { findings, overtaken, repeated } = await check()
    const abandoned = writes.filter((own) => own.isAbandoned === true && !isFinal(own)).length
    return {
      ...{ name: scenario.name, seed, overtaken, repeated, settledMs, ...counts() },
      startMs: sum(supervisors.map((each) => each.counts().startMs)) / supervisors.length,
      crashes: supervisors.flatMap((each) => each.counts().crashes),
      findings: [
        // If the journal was lost, the adapter composes replies to resent batches anew, so their bytes may change.
        ...findings.filter(({ kind }) => damage === undefined || kind !== 'changedReply'),
        ...ledger.map((finding): Finding => ({ ...finding, story })),
        ...(damage?.findings() ?? []),
      ],
      stages: changes && { ...changes.counts(), abandoned },
    }
  } finally {
    for (const close of closing.reverse()) await close()
  }
}

async function untilOver(bounds: RunBounds, counts: () => Counts): Promise<void> {
  const wanted = countNames.flatMap((name): [CountName, number][] => {
    const { [name]: least } = bounds
    return least === undefined ? [] : [[name, least]]
  })
  const endMs = performance.now() + bounds.forMs
  const isEnough = (): boolean => {
    if (wanted.length === 0) return false
    const now = counts()
    return wanted.every(([name, least]) => now[name] >= least)
  }
  while (performance.now() < endMs && !isEnough()) await delay(50)
}

async function isSettled(load: Load, check: () => Promise<Checked>): Promise<boolean> {
  const waiting = load.history().writes.filter((own) => !isFinal(own) && own.isAbandoned !== true)
  if (waiting.length === 0) return true
  // A newer write may have replaced a write whose last answer is "unknown". Only the check finds that out, and the check is slow.
  if (!waiting.every(({ answers }) => answers.at(-1)?.answer.kind === 'unknown')) return false
  return (await check()).findings.every(({ kind }) => kind !== 'unsettled')
}

/** Returns the additional settings of the clients if V2 serves too. */
function stagedLoad({ stages }: Scenario, log: ForwardLog): Partial<LoadOptions> {
  if (stages === undefined) return {}
  const { resendWindowMs } = stages
  return {
    schools: schoolsOf(stages),
    isOfV2: log.isOfV2,
    // Clients resend only during half of the window. The margin is needed because the adapter and the store measure the window from other
    // moments.
    sendAgainMs: resendWindowMs / 2,
    relayedMs: ({ name }) =>
      log
        .forwards()
        .get(name)
        ?.findLast(({ face }) => face === 'V2')?.atMs,
  }
}

/** Reads the ids that clients may write to, with only the last `lastEvents` events, because earlier events already have marks. */
async function readSamples(sandboxUrl: string, lastEvents = Infinity): Promise<Samples> {
  const samples = (await readJson(`${sandboxUrl}/_sandbox/samples`)) as Samples
  return { ...samples, events: samples.events.slice(-lastEvents) }
}

/** Returns `count` different tokens, each with all permissions. */
async function issueTokens(sandboxUrl: string, count: number): Promise<string[]> {
  const body = new URLSearchParams({
    grant_type: 'client_credentials',
    client_id: 'sandbox',
    client_secret: 'sandbox',
    scope: 'attendance',
    acr_values: 'orgselected:school',
  })
  const issue = async (): Promise<string> => {
    const reply = await fetch(`${sandboxUrl}/connect/token`, { method: 'POST', body })
    return ((await reply.json()) as { access_token: string }).access_token
  }
  return Promise.all(Array.from({ length: count }, issue))
}

async function readJson(url: string): Promise<unknown> {
  return (await fetch(url)).json()
}

function countBroken(proxy: FaultProxy): number {
  const { refuse, cut, halt, resetBefore, resetAfter, truncate } = proxy.counts()
  return refuse + cut + halt + resetBefore + resetAfter + truncate
}

function portOf(url: string): number {
  return Number(new URL(url).port)
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}
