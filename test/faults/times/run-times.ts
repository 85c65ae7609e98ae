import { appendFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'

import { type App, createApp, parseConfig } from '../../../src/index.ts'
import { createLogger } from '../../../src/observability/logger.ts'
import type { EffectEntry } from '../../../src/sandbox/control/routes.ts'
import { createSandbox } from '../../../src/sandbox/index.ts'
import { securityDomains } from '../../../src/sandbox/learner/learner-sets.ts'
import { createRandom, type Random } from '../../../src/sandbox/random.ts'
import { checkHistory } from '../check/check-history.ts'
import type { Finding } from '../check/finding.ts'
import { untilBalanced } from '../check/ledger.ts'
import { disturb } from '../disturb.ts'
import { createLoadClient, schoolHeader } from '../load/client.ts'
import { type History, isFinal } from '../load/history.ts'
import { createSequence, startLoad, usualLoad } from '../load/load.ts'
import { nameIn, type Samples } from '../load/write.ts'
import { startFaultProxy } from '../proxy/fault-proxy.ts'
import { drawFaults } from '../proxy/fault.ts'
import { createForwardLog } from '../proxy/forwards.ts'
import { noCounts, type RunResult } from '../scenario/report.ts'
import { PARTNER } from '../scenario/scenario.ts'
import { settle } from '../scenario/settle.ts'
import { startStorms } from '../scenario/storms.ts'
import { missingPostgres, startPostgres } from '../../support/start-postgres.ts'
import { findStuck, describeNeighbours, toUnsettled } from './find-stuck.ts'
import { startServiceTimes } from './service-times.ts'
import { type School, startTwins } from './twins.ts'
import { createUnheard } from './unheard.ts'

interface TimesRun {
  readonly seed: number
  /** Creates an empty PostgreSQL database and returns its URL. Default: the journal is an SQLite file. */
  readonly createDatabase?: (() => Promise<string>) | undefined
  /** Receives the logs of the adapters. Default: the logs are discarded. */
  readonly logFolder?: string | undefined
}

/** The number of marks that ends a run. A run has at most twice as many marks, and ends after `MAX_RUN_MS` in any case. */
const RECORDS = 120
const MAX_RUN_MS = 8_000
/** The time within which every mark must be final once there are no more faults. */
const SETTLE_MS = 10_000
const GRACE_MS = 300
const REPLAYS = 20
const HOUR_MS = 3_600_000
/** Few learners and events, so that clients often write marks of the same learner at the same event. */
const LEARNERS = 8
const EVENTS = 3
const TWIN_KEYS = 2
/** V2 serves the first school. V3 serves the second school. */
const SCHOOLS = ['school-v2', 'school-v3'] as const

/**
 * Runs adapters in this process in front of a service whose clock, zone, precision and rounding change. Two schools write marks of the same
 * learners, one school through V2 and the other through V3. Answers are lost, clocks of adapters are stepped, and adapters restart. The
 * seed decides all events.
 */
export async function runTimes({ seed, createDatabase, logFolder }: TimesRun): Promise<RunResult> {
  const closing: (() => unknown)[] = []
  const random = createRandom(seed, 'times')
  const tick = createSequence()
  try {
    const tokens = SCHOOLS.map(tokenOf)
    const replaces = random.chance(0.75)
    const sandbox = createSandbox({
      v2Port: 0,
      onExisting: replaces ? 'replace' : 'duplicate',
      tokens: tokens.map((token) => ({ token, domains: [...securityDomains] })),
    })
    closing.push(() => sandbox.close())
    const { url, v2Url } = await sandbox.listen()
    const read = async (path: string): Promise<unknown> => (await fetch(`${url}/_sandbox/${path}`)).json()
    const effects = async (): Promise<EffectEntry[]> => (await read('effects')) as EffectEntry[]
    const times = await startServiceTimes(url, createRandom(seed, 'service'), tick)
    closing.push(() => times.stop())
    const log = createForwardLog(tick)
    const shaky = { resetBefore: 0.1, resetAfter: 0.15, truncate: 0.05, stall: 0.05 }
    const behind = await startFaultProxy({
      ...{ targets: [Number(new URL(url).port)], onForward: log.onForward, rewrite: times.rewrite },
      plan: drawFaults(createRandom(seed, 'behind'), shaky),
    })
    closing.push(() => behind.close())
    // If the service keeps every mark, one lost reply of V2 would leave later outcomes unknown, so none is lost.
    const lessShaky = { resetBefore: 0.05, resetAfter: replaces ? 0.04 : 0, stall: 0.15 }
    const unheard = createUnheard(drawFaults(createRandom(seed, 'behind V2'), lessShaky), log)
    const behindV2 = await startFaultProxy({
      ...{ targets: [Number(new URL(v2Url).port)], onForward: unheard.onForward, plan: unheard.plan },
    })
    closing.push(() => behindV2.close())

    const folder = mkdtempSync(join(tmpdir(), 'markbridge-times-'))
    closing.push(() => rmSync(folder, { recursive: true, force: true }))
    const journalUrl = (await createDatabase?.()) ?? `sqlite:${join(folder, 'journal.db')}`
    const logFile = logFolder === undefined ? undefined : join(logFolder, `${seed}-times.log`)
    const instances = await startInstances(random, tick, {
      v3: behind.url,
      v2: behindV2.url,
      journalUrl,
      logFile,
    })
    closing.push(() => instances.close())
    const arrivals = createForwardLog(tick)
    const watched = { arrivals, log, unheard, replaces }
    const before = await startFaultProxy({
      ...{ targets: instances.ports, onForward: arrivals.onForward },
      plan: drawFaults(createRandom(seed, 'before'), { resetAfter: 0.03, truncate: 0.02 }),
    })
    closing.push(() => before.close())

    const { learners, events, codes } = (await read('samples')) as Samples
    const patience = { maxDelayMs: 60, patienceMs: 5_000, impatience: 0.1 }
    const load = startLoad({
      ...{ ...usualLoad, ...patience, seed, url: before.url, tick, tokens, schools: SCHOOLS },
      ...{ connections: 10, maxRecords: 3, thinkMs: 10, replayShare: 0.1, isOfV2: log.isOfV2 },
      samples: { learners: learners.slice(0, LEARNERS), events: events.slice(0, EVENTS), codes },
    })
    closing.push(() => load.close())
    const twins = Array.from({ length: TWIN_KEYS }, (_, number) => {
      const draw = createRandom(seed, `twins ${number}`)
      const schools = SCHOOLS.map((name, index): School => {
        // Clients of V2 never give up a request, because V2 might apply the request after the client's next write.
        const impatience = index === 0 ? 0 : patience.impatience
        const client = createLoadClient({
          ...{
            ...patience,
            impatience,
            url: before.url,
            random: draw,
            tick,
            maxAttempts: 1,
            isOfV2: log.isOfV2,
          },
        })
        closing.push(() => client.close())
        return { client, name, token: tokens[index] ?? '', face: index === 0 ? 'V2' : 'V3' }
      })
      const [learner = '', event = '', code = ''] = [learners[LEARNERS + number], events[0], codes[0]?.id]
      const write = { learner, event, code, present: true, absent: false, minutesLate: null, valid: true }
      const from = 1_000_000 * (number + 1)
      // The first of these clients writes to V3 only, where a mark is never recorded twice.
      const own = (number === 0 ? schools.slice(1) : schools) as [School, ...School[]]
      return startTwins({
        seed,
        from,
        random: draw,
        tick,
        schools: own,
        write,
        replaces,
        effects,
        settleMs: SETTLE_MS,
      })
    })
    const names = random.chance(0.5) ? (['failing', 'unavailable', 'late'] as const) : []
    const storms = startStorms(url, names, createRandom(seed, 'storms'))
    closing.push(() => storms.stop())

    const untilMs = performance.now() + MAX_RUN_MS
    const wanted = RECORDS + random.below(RECORDS)
    while (load.records() < wanted && performance.now() < untilMs) await delay(20)
    await instances.stopFaults()
    await times.stop()
    await storms.stop()
    for (const proxy of [before, behind, behindV2]) proxy.stopFaults()
    const startedMs = performance.now()
    await Promise.all(twins.map((each) => each.stop()))
    const settledBy = startedMs + SETTLE_MS
    const isSettled = async (): Promise<boolean> =>
      findStuck(load.history().writes, await effects(), watched).length === 0
    await settle(load, isSettled, settledBy)
    const ledger = await untilBalanced(instances.url, settledBy)
    const settledMs = performance.now() - startedMs
    await load.replayLast(REPLAYS)
    await delay(GRACE_MS)
    const history = load.history()
    const isTwin = ({ learner }: EffectEntry): boolean =>
      learners.indexOf(learner) >= LEARNERS && learners.indexOf(learner) < LEARNERS + TWIN_KEYS
    const own = (await effects())
      .filter((effect) => !isTwin(effect))
      .map((effect) => withoutPresence(effect, history))
    const checked = checkHistory(history, own, { alters: true, forwards: log.forwards() })
    const open = history.writes.filter((each) => !isFinal(each))
    const stuck = findStuck(history.writes, own, watched)
    const findings = [
      ...[...checked.findings.filter(({ kind }) => kind !== 'unsettled'), ...stuck.map(toUnsettled)].map(
        (finding): Finding => ({
          ...finding,
          story: describeNeighbours(finding.of, history.writes, own, watched) || finding.story || '',
        }),
      ),
      ...twins.flatMap((each) => each.findings),
      ...ledger,
    ]
    const kept = `0 the service ${replaces ? 'replaces a mark' : 'keeps every mark'}`
    const story = [kept, ...times.story, ...instances.story].sort(
      (one, other) => parseInt(one) - parseInt(other),
    )
    const { resetBefore, resetAfter, truncate } = behind.counts()
    return {
      ...{ ...noCounts, name: 'changing times', seed, startMs: 0, settledMs, crashes: [], stages: undefined },
      findings: withStory(findings, story),
      broken: resetBefore + resetAfter + truncate,
      storms: storms.count(),
      clockSteps: story.length,
      records: history.writes.length + twins.reduce((sum, each) => sum + each.count(), 0),
      ...{ replays: history.replays, overtaken: open.length - stuck.length, repeated: checked.repeated },
    }
  } finally {
    for (const close of closing.reverse()) await close()
  }
}

/** Returns the effect with the posted presence, because the service derives it from the code if the body is minimal. */
function withoutPresence(effect: EffectEntry, { writes }: History): EffectEntry {
  const write = writes.find(({ write: { name } }) => name === nameIn(effect.comment))?.write
  return write === undefined ? effect : { ...effect, present: write.present, absent: write.absent }
}

/** Returns a token that names the school as its client, so that the batches of each school have their own owner. */
function tokenOf(school: string): string {
  const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
  return `${encode({ alg: 'none' })}.${encode({ iss: 'https://issuer', client_id: school })}.${encode({})}`
}

interface TimedInstances {
  readonly ports: readonly number[]
  /** The URL of the first adapter. */
  readonly url: string
  readonly story: readonly string[]
  /** Ends the clock steps and the restarts. The clocks then show the true time. */
  stopFaults(): Promise<void>
  close(): Promise<void>
}

async function startInstances(
  random: Random,
  tick: () => number,
  urls: {
    readonly v3: string
    readonly v2: string
    readonly journalUrl: string
    readonly logFile: string | undefined
  },
): Promise<TimedInstances> {
  const offsets = Array.from({ length: 1 + random.below(3) }, () => 0)
  const writeMode = random.chance(0.8) ? 'single' : 'batch'
  const bodyProfile = random.chance(0.85) ? 'full' : 'minimal'
  const [areStepped, areRestarted] = [random.chance(0.5), random.chance(0.4)]
  const start = async (index: number, port: number): Promise<{ app: App; port: number }> => {
    const config = parseConfig({
      listen: { port },
      upstreams: {
        v3: { baseUrl: urls.v3, timeouts },
        v2: { baseUrl: urls.v2, timeouts: { connectMs: timeouts.connectMs, headersMs: timeouts.headersMs } },
      },
      journal: { url: urls.journalUrl },
      partners: [
        {
          ...{ id: PARTNER, match: { any: true }, clients: 'open', stage: 'canary' },
          canary: { percent: 0, header: schoolHeader, always: [SCHOOLS[1]] },
          v3: { budgetMs: 4_000, readBackAfterMs: [5, 15, 40], writeMode, bodyProfile },
        },
      ],
    })
    const { logFile } = urls
    const logger =
      logFile === undefined
        ? createLogger('silent')
        : createLogger('info', { write: (line) => appendFileSync(logFile, `${index} ${line}`) })
    const nowMs = (): number => Date.now() + (offsets[index] ?? 0)
    const app = createApp(config, { logger, backgroundNice: 0, leaseMs: 2_000, nowMs })
    return { app, port: (await app.listen()).port }
  }
  const apps = await Promise.all(offsets.map((_, index) => start(index, 0)))
  const ports = apps.map(({ port }) => port)
  const story = [`0 ${offsets.length} adapters, ${writeMode} writes, ${bodyProfile} bodies`]
  const disturbing =
    areStepped || areRestarted
      ? disturb(
          () => 100 + random.below(500),
          async () => {
            const index = random.below(offsets.length)
            if (areStepped && (!areRestarted || random.chance(0.6))) {
              offsets[index] =
                (offsets[index] ?? 0) === 0 ? random.pick([HOUR_MS, -HOUR_MS, 2_000, -2_000]) : 0
              story.push(`${tick()} adapter ${index} ${offsets[index] / 1_000} s ahead`)
            } else {
              await apps[index]?.app.close()
              apps[index] = await start(index, ports[index] ?? 0)
              story.push(`${tick()} adapter ${index} started again`)
            }
          },
        )
      : undefined
  return {
    ports,
    url: `http://127.0.0.1:${ports[0] ?? 0}`,
    story,
    stopFaults: async () => {
      await disturbing?.stop()
      offsets.fill(0)
    },
    close: async () => {
      await disturbing?.stop()
      await Promise.all(apps.map(({ app }) => app.close()))
    },
  }
}

const timeouts = { connectMs: 1_000, headersMs: 1_500, bodyMs: 1_500 }

/** Shortens a long run of resends in a story to its first four events. */
function shorten(story: string): string {
  return story.replaceAll(
    /((?:\d+ (?:sent|answered \w+); ){4})(?:\d+ (?:sent|answered \w+); ){8,}/g,
    (_whole, first: string) => `${first}… `,
  )
}

/** Adds the events of the service to the first finding. */
function withStory(findings: readonly Finding[], story: readonly string[]): readonly Finding[] {
  return findings.map((finding, index) => {
    const own = shorten(finding.story ?? '')
    return { ...finding, story: index > 0 ? own : `${own}\n    ${story.join('\n    ')}` }
  })
}

/** The number of concurrent runs. Each run mostly waits. */
const LANES = 3
/** One of this many runs has its journal in PostgreSQL. */
const POSTGRES_EVERY = 5

/** Calls `runTimes` for `count` seeds, beginning with `seed`. `onResult` is called with each result as it arrives. */
export async function runSeeds(
  seed: number,
  count: number,
  logFolder: string | undefined,
  onResult: (result: RunResult) => void,
): Promise<RunResult[]> {
  const postgres = missingPostgres() === undefined ? await startPostgres() : undefined
  const seeds = Array.from({ length: count }, (_, index) => seed + index)
  const results: RunResult[] = []
  const work = async (): Promise<void> => {
    for (let next = seeds.shift(); next !== undefined; next = seeds.shift()) {
      const createDatabase =
        postgres !== undefined && next % POSTGRES_EVERY === 0 ? () => postgres.createDatabase() : undefined
      const result = await runTimes({ seed: next, createDatabase, logFolder })
      results.push(result)
      onResult(result)
    }
  }
  try {
    await Promise.all(Array.from({ length: LANES }, work))
  } finally {
    await postgres?.close()
  }
  return results.sort((one, other) => one.seed - other.seed)
}
