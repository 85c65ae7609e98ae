import { setTimeout as delay } from 'node:timers/promises'

import type { EffectEntry } from '../../../src/sandbox/control/routes.ts'
import { createRandom } from '../../../src/sandbox/random.ts'
import { startCli } from '../../cli/run-cli.ts'
import { type Checked, checkHistory, type Finding } from '../check/check-history.ts'
import { startClockSteps } from '../clocks/clock-steps.ts'
import { isFinal } from '../load/history.ts'
import { createSequence, type LoadOptions, startLoad, usualLoad } from '../load/load.ts'
import type { Samples } from '../load/write.ts'
import { type FaultCounts, type FaultProxy, startFaultProxy } from '../proxy/fault-proxy.ts'
import { drawFaults } from '../proxy/fault.ts'
import { createForwardLog, type ForwardLog } from '../proxy/forwards.ts'
import type { Supervisor, SupervisorCounts } from '../supervisor/supervisor.ts'
import { startServiceTimes } from '../times/service-times.ts'
import { startStoreCrashes } from './crash-store.ts'
import { describeOpen } from './describe-open.ts'
import { pauseProcesses } from './pause-processes.ts'
import type { Scenario, StoredValues } from './scenario.ts'
import { settle } from './settle.ts'
import { changeStages, leaveLegacy, schoolsOf, type StageChangeCounts } from './stage-changes.ts'
import { startInstances } from './start-instances.ts'
import { slowV2, startStorms } from './storms.ts'

/** When a run ends: after this time, or earlier when so much has happened; without any of that, after this time. */
export interface RunBounds extends Partial<
  Pick<
    RunResult,
    'kills' | 'busy' | 'pauses' | 'broken' | 'damages' | 'storms' | 'records' | 'replays' | 'changes'
  >
> {
  readonly seed: number
  readonly forMs: number
  /** When the faults are over, every record must be final within this time, for its client and in the journal. */
  readonly settleMs: number
  /** Receives the logs of the adapters; default: they are not kept. */
  readonly logFolder?: string | undefined
}

/** What happened in a run. */
export interface RunResult extends Checked, Omit<SupervisorCounts, 'startMs'> {
  readonly name: string
  readonly seed: number
  /** Mean time of all adapters from start to ready. */
  readonly startMs: number
  /** Connections, requests and replies that were broken or held up. */
  readonly broken: number
  readonly storms: number
  readonly storeCrashes: number
  /** Times that a process stood still. */
  readonly pauses: number
  /** Times that a clock was stepped. */
  readonly clockSteps: number
  /** Times that the journal was damaged. */
  readonly damages: number
  readonly records: number
  readonly replays: number
  /** From the end of the faults until every record was final. */
  readonly settledMs: number
  /** Changes of the stage of the partner. */
  readonly changes: number
  /** What became of all that were tried; undefined: none were. */
  readonly stages: (StageChangeCounts & { readonly abandoned: number }) | undefined
}

/** Batches that are sent once more when all is final. */
const REPLAYS = 100
/** What a write may still do in the background when every client has its answer shows within this time. */
const GRACE_MS = 1_500

/** Runs one scenario: real processes, a real store, the sandbox as a process of its own. */
export async function runScenario(scenario: Scenario, bounds: RunBounds): Promise<RunResult> {
  const { seed } = bounds
  const { onExisting = 'replace', service = [] } = scenario
  const closing: (() => Promise<unknown>)[] = []
  try {
    const ports = scenario.stages === undefined ? ['--port', '0'] : ['--port', '0', '--v2-port', '0']
    const sandbox = startCli(['sandbox', ...ports, '--on-existing', onExisting, ...service])
    closing.push(() => sandbox.stop())
    const printed = await sandbox.until(scenario.stages === undefined ? /ready \S+\n/ : /v2 ready \S+\n/)
    const [, sandboxUrl = '', v2Url] = /ready (\S+)(?:\nsandbox v2 ready (\S+))?/.exec(printed) ?? []
    if (scenario.values !== undefined) await setValues(sandboxUrl, scenario.values)
    const { slowV2Ms = 0 } = scenario.stages ?? {}
    if (slowV2Ms > 0) await slowV2(v2Url ?? '', slowV2Ms)
    const tick = createSequence()
    const log = createForwardLog(tick)
    const times =
      scenario.changingTimes === true
        ? await startServiceTimes(sandboxUrl, createRandom(seed, 'service'), tick)
        : undefined
    closing.push(() => times?.stop() ?? Promise.resolve())
    const behind = await startFaultProxy({
      targets: [Number(new URL(sandboxUrl).port)],
      plan: drawFaults(createRandom(seed, 'behind'), scenario.behind ?? {}),
      onForward: log.onForward,
      ...(times === undefined ? {} : { rewrite: times.rewrite }),
    })
    closing.push(() => behind.close())
    const behindV2 = v2Url === undefined ? undefined : await placeBeforeV2(scenario, v2Url, log, seed)
    if (behindV2 !== undefined) closing.push(() => behindV2.close())
    const urls = { v3: behind.url, v2: behindV2?.url }
    const instances = await startInstances(scenario, urls, seed, bounds.logFolder)
    closing.push(() => instances.close())
    const { supervisors, postgres, storeWay } = instances
    const before = await startFaultProxy({
      targets: supervisors.map(({ port }) => port),
      plan: drawFaults(createRandom(seed, 'before'), scenario.before ?? {}),
    })
    closing.push(() => before.close())
    const proxies = [before, behind, behindV2, storeWay].filter((proxy) => proxy !== undefined)
    const samples = await readSamples(sandboxUrl, scenario.lastEvents)
    const load = startLoad({
      ...usualLoad,
      ...scenario.load,
      ...(scenario.clients === undefined ? {} : { tokens: await issueTokens(sandboxUrl, scenario.clients) }),
      ...stagedLoad(scenario, log),
      ...{ seed, url: before.url, samples, tick },
    })
    closing.push(() => load.close())
    const storms = startStorms(sandboxUrl, scenario.storms ?? [], createRandom(seed, 'storms'))
    const server = postgres?.server
    const crashes =
      server === undefined || scenario.storeLivesMs === undefined
        ? undefined
        : startStoreCrashes(server, scenario.storeLivesMs)

    const clockSteps = startClockSteps(createRandom(seed, 'clocks'), instances.clocks)
    const pauses = pauseProcesses(scenario, instances, sandbox.pid ?? 0, seed)
    const changes = changeStages(scenario, instances, seed)
    if (changes !== undefined) closing.push(() => changes.stop())

    await untilOver(bounds, () => ({
      ...countAll(supervisors),
      pauses: pauses?.count() ?? 0,
      broken: countBroken(proxies),
      damages: instances.damage?.count() ?? 0,
      storms: storms.count(),
      records: load.records(),
      replays: load.history().replays,
      changes: changes?.counts().made ?? 0,
    }))
    await changes?.stop()
    await pauses?.stop()
    await clockSteps.stop()
    await storms.stop()
    await times?.stop()
    await crashes?.stop()
    for (const proxy of proxies) proxy.stopFaults()
    await Promise.all(supervisors.map((each) => each.spare()))
    // Also those that clients gave up are sent once more: at `legacy` that is too late for V3's answers.
    await leaveLegacy(scenario, instances.storeUrl)
    const check = async (): Promise<Checked> =>
      checkHistory(load.history(), (await readJson(`${sandboxUrl}/_sandbox/effects`)) as EffectEntry[], {
        oneMark: onExisting === 'conflict',
        alters: scenario.values !== undefined,
        forwards: log.forwards(),
      })
    const metricsUrl = scenario.store === 'none' ? undefined : `${supervisors[0]?.url ?? ''}/metrics`
    const { settledMs, ledger } = await settle(load, check, metricsUrl, bounds.settleMs)
    const openOnes = ledger.length === 0 ? '' : await describeOpen(instances.storeUrl)
    if (scenario.store !== 'none' && scenario.damaged !== true) await load.replayLast(REPLAYS)
    await delay(GRACE_MS)
    const history = load.history()
    // What was answered is lost with a journal, and is rendered anew from what the service has.
    const isExpected = ({ kind }: Finding): boolean => scenario.damaged !== true || kind !== 'changedReply'
    const { findings, overtaken, repeated } = await check()
    return {
      name: scenario.name,
      seed,
      ...countAll(supervisors),
      broken: countBroken(proxies),
      storms: storms.count(),
      storeCrashes: crashes?.count() ?? 0,
      pauses: pauses?.count() ?? 0,
      clockSteps: clockSteps.count() + (times?.story.length ?? 0),
      damages: instances.damage?.count() ?? 0,
      records: history.writes.length,
      replays: history.replays,
      overtaken,
      repeated,
      findings: [
        ...findings.filter(isExpected),
        ...ledger.map((finding): Finding => ({ ...finding, story: openOnes })),
        ...(instances.damage?.findings() ?? []),
      ],
      settledMs,
      stages: changes && {
        ...changes.counts(),
        abandoned: history.writes.filter((own) => own.isAbandoned === true && !isFinal(own)).length,
      },
      changes: changes?.counts().made ?? 0,
    }
  } finally {
    for (const close of closing.reverse()) await close()
  }
}

const bounded = [
  'kills', 'busy', 'pauses', 'broken', 'damages', 'storms', 'records', 'replays', 'changes',
] as const // prettier-ignore

async function untilOver(
  bounds: RunBounds,
  count: () => Record<(typeof bounded)[number], number>,
): Promise<void> {
  const named = bounded.filter((name) => bounds[name] !== undefined)
  const endMs = performance.now() + bounds.forMs
  const isEnough = (): boolean => {
    if (named.length === 0) return false
    const counts = count()
    return named.every((name) => counts[name] >= (bounds[name] ?? 0))
  }
  while (performance.now() < endMs && !isEnough()) await delay(50)
}

function countAll(supervisors: readonly Supervisor[]): SupervisorCounts {
  const counts = supervisors.map((each) => each.counts())
  const total = (name: Exclude<keyof SupervisorCounts, 'crashes'>): number =>
    sum(counts.map((each) => each[name]))
  return {
    kills: total('kills'),
    failpoints: total('failpoints'),
    busy: total('busy'),
    beforeReady: total('beforeReady'),
    recovering: total('recovering'),
    startMs: total('startMs') / counts.length,
    crashes: counts.flatMap((each) => each.crashes),
  }
}

/** The proxy between the adapters and V2. */
function placeBeforeV2(
  { stages }: Scenario,
  v2Url: string,
  log: ForwardLog,
  seed: number,
): Promise<FaultProxy> {
  return startFaultProxy({
    targets: [Number(new URL(v2Url).port)],
    plan: drawFaults(createRandom(seed, 'behind V2'), stages?.behindV2 ?? {}),
    onForward: log.onLegacyForward,
  })
}

/** What clients do where V2 serves too. */
function stagedLoad({ stages }: Scenario, log: ForwardLog): Partial<LoadOptions> {
  if (stages === undefined) return {}
  const { resendWindowMs } = stages
  return {
    schools: schoolsOf(stages),
    isOfV2: log.isOfV2,
    // The adapter counts from the end of the request, and the store from the next second.
    sendAgainMs: resendWindowMs / 2,
    relayedMs: ({ name }) =>
      log
        .forwards()
        .get(name)
        ?.findLast(({ face }) => face === 'V2')?.atMs,
  }
}

/** The last events alone, where the others have marks already. */
async function readSamples(sandboxUrl: string, lastEvents = Infinity): Promise<Samples> {
  const samples = (await readJson(`${sandboxUrl}/_sandbox/samples`)) as Samples
  return { ...samples, events: samples.events.slice(-lastEvents) }
}

async function setValues(sandboxUrl: string, values: StoredValues): Promise<void> {
  const headers = { 'Content-Type': 'application/json' }
  const reply = await fetch(`${sandboxUrl}/_sandbox/values`, {
    method: 'PUT',
    headers,
    body: JSON.stringify(values),
  })
  const text = await reply.text()
  if (!reply.ok) throw new Error(`the sandbox takes no such values: ${text}`)
}

/** Tokens that hold everything, each of its own. */
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

function countBroken(proxies: readonly FaultProxy[]): number {
  const kinds: (keyof FaultCounts)[] = [
    'refuse', 'cut', 'halt', 'resetBefore', 'resetAfter', 'truncate',
  ] // prettier-ignore
  return sum(proxies.flatMap((proxy) => kinds.map((kind) => proxy.counts()[kind])))
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}
