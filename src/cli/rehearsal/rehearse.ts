import { setTimeout as delay } from 'node:timers/promises'

import { request } from 'undici'
import * as z from 'zod'

import { AdapterError } from '../../errors.ts'
import type { Step } from '../../rollout/stage.ts'
import { change } from '../rollout/change.ts'
import { readHistory } from '../rollout/show.ts'
import { startTraffic } from './school-traffic.ts'
import type { ServedMarks } from './served-marks.ts'

interface RehearsalOptions {
  readonly adapter: string
  readonly sandbox: string
  /** The configuration file of the adapter, which the functions of the `rollout` commands read. */
  readonly config: string
  readonly partner: string
  readonly schoolHeader: string
  /** The stage at which the partner begins: `legacy` or `shadow`. */
  readonly stage: string
  readonly registersPerSecond: number
  readonly served: ServedMarks
  readonly signal: AbortSignal
}

/** The percentage of the schools on V3 at `canary`. A guard needs enough schools on both sides. */
const SHARE = 50
/** The fraction of the marks that V3 shows with a wrong code while it has the defect. */
const DEFECT = 0.2

const POLL_MS = 1_000
/** The pause between two lines about the advice, in milliseconds. */
const REPORT_MS = 10_000
/** The maximum time to wait for a condition, in milliseconds. */
const PATIENCE_MS = 300_000

const resultSchema = z.object({
  result: z.string(),
  from: z.object({ stage: z.string() }),
  message: z.string(),
  verdict: z.string().optional(),
  missing: z.array(z.string()).default([]),
})
const historySchema = z.object({ entries: z.array(z.object({ by: z.string(), reason: z.string() })) })

/**
 * Moves a partner from V2 to V3 with traffic of its own, and prints one line for each event. On the way V3 shows wrong marks, an operator
 * moves the partner back, and V3 fails. Steps and advice are those of the `rollout` commands. Throws `ADP_CONFIGURATION` if a condition is
 * not met in time.
 */
export async function rehearse(options: RehearsalOptions): Promise<void> {
  const { config, partner, sandbox, served, signal } = options
  const startMs = performance.now()
  const say = (text: string): void => {
    const seconds = Math.floor((performance.now() - startMs) / 1_000)
    console.log(`${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')} ${text}`)
  }
  const pause = (ms: number): Promise<void> => delay(ms, undefined, { signal })
  const control = async (method: 'PUT' | 'DELETE', name: string, body?: object): Promise<void> => {
    const headers = { 'Content-Type': 'application/json' }
    const text = body === undefined ? null : JSON.stringify(body)
    await (await request(`${sandbox}/_sandbox/${name}`, { method, headers, body: text })).body.dump()
  }
  const step = async (given: Step) => resultSchema.parse((await change(partner, given, { config })).document)
  const take = async (given: Step): Promise<void> => {
    const { result, message } = await step(given)
    if (result !== 'done') throw stopped(message)
    say(message)
  }
  /** Polls with dry runs until `isMet` returns true for what the step would do. Prints what is missing. Does not take the step. */
  const until = async (
    given: Step,
    isMet: (result: z.output<typeof resultSchema>) => boolean,
  ): Promise<void> => {
    for (let waitedMs = 0; ; waitedMs += POLL_MS) {
      const found = await step({ ...given, dryRun: true })
      if (isMet(found)) return
      if (waitedMs >= PATIENCE_MS || found.result === 'refused') throw stopped(found.message)
      const { verdict = found.result, missing } = found
      const why = missing.length === 0 ? found.message : missing.join(' ')
      if (waitedMs % REPORT_MS === 0) say(`Advice: ${verdict}. ${why}`)
      await pause(POLL_MS)
    }
  }
  const takeOnceReady = async (given: Step): Promise<void> => {
    await until(given, ({ result }) => result === 'possible')
    say('Advice: ready.')
    await take(given)
  }
  const reportServed = async (): Promise<void> => {
    const { V2, V3 } = await served.read()
    say(`The service has ${V2} marks through V2 and ${V3} through V3.`)
  }

  const traffic = await startTraffic(options)
  say(`Clients of ${traffic.schools} schools post registers through the adapter.`)
  if (options.stage === 'legacy') {
    say('Stage legacy: V2 serves every request, and Markbridge compares nothing.')
    await pause(5_000)
    await reportServed()
    await take({ kind: 'set', stage: 'shadow', reason: 'traffic runs through Markbridge' })
  }
  say(
    'Stage shadow: V2 serves. Markbridge compares each reply of V2 with the reply that it would build from V3.',
  )

  const toCanary = { kind: 'set', stage: 'canary', percent: SHARE, reason: 'half of the schools' } as const
  await control('PUT', 'differences', { face: 'V3', share: DEFECT, kinds: ['code'] })
  say(`V3 gets a defect: it shows a wrong code for ${DEFECT * 100} % of the marks.`)
  const differs = / differ\b/
  await until(toCanary, ({ missing }) => missing.some((sentence) => differs.test(sentence)))
  const { missing } = await step({ ...toCanary, dryRun: true })
  say(`The difference is found, so the step is refused: ${missing.find((one) => differs.test(one)) ?? ''}`)
  await control('DELETE', 'differences')
  say('The defect is mended. The old differences would still count, so the evidence is restarted.')
  await take({ kind: 'set', stage: 'shadow', restartEvidence: true, reason: 'V3 is mended' })
  await takeOnceReady(toCanary)

  say(`Stage canary: V3 serves ${SHARE} % of the schools, and V2 serves the others.`)
  await pause(10_000)
  await reportServed()
  say('A school complains, so an operator goes back. This step waits for nothing.')
  await take({ kind: 'back', reason: 'a school complains' })
  say('The complaint had another cause. The evidence for the next step begins anew.')
  await takeOnceReady(toCanary)

  await pause(10_000)
  await control('PUT', 'faults', { kind: 'status', status: 503, face: 'V3' })
  say('V3 fails: it answers every request with 503. Schools on V3 cannot save registers, schools on V2 can.')
  const onV3 = { kind: 'set', stage: 'v3', reason: 'all schools', despiteHold: true } as const
  await until(onV3, ({ from }) => from.stage === 'shadow')
  const { entries } = historySchema.parse((await readHistory(partner, { config, limit: 1 })).document)
  const { by = '', reason = '' } = entries.at(-1) ?? {}
  say(`The ${by} took the partner back to shadow: ${reason}`)
  await control('DELETE', 'faults')
  say(
    `V3 works again. ${traffic.counts().refusals} registers were not saved at once. Their clients send them again.`,
  )

  say('A guard acted within the hour, so the next steps need --despite-hold.')
  await takeOnceReady({ ...toCanary, despiteHold: true })
  say(
    'Stage canary again. The step to v3 needs marks of V3 that were read back on V2, and enough trials of the guard.',
  )
  await takeOnceReady(onV3)
  say('Stage v3: V3 serves all schools. V2 remains for a step back.')
  await takeOnceReady({ kind: 'set', stage: 'complete', reason: 'V2 is switched off', despiteHold: true })
  say('Stage complete: V3 serves, and V2 is never called.')
  await pause(2_000)
  await traffic.stop()
  await reportServed()
  const { V2, V3 } = await served.read()
  const { accepted } = traffic.counts()
  if (V2 + V3 !== accepted)
    throw stopped(`Clients saw ${accepted} marks accepted, but the service has ${V2 + V3}.`)
  say(
    `The rehearsal is complete. Clients saw ${accepted} marks accepted. No mark is lost, and no mark is stored twice.`,
  )
}

const stopped = (message: string): AdapterError =>
  new AdapterError('ADP_CONFIGURATION', `The rehearsal stopped: ${message}`)
