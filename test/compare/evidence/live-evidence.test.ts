import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'

import { describe, expect, it } from 'vitest'

import { latestRuns, toFigures, toTrend } from '../../../src/compare/evidence/read-evidence.ts'
import type { ComparedExchange } from '../../../src/compare/live/exchange.ts'
import { AdapterError } from '../../../src/errors.ts'
import type { ComparisonFigures } from '../../../src/rollout/advise.ts'
import { codeFingerprint } from '../../../src/rollout/evidence/count-name.ts'
import type { EvidenceStore } from '../../../src/rollout/evidence/evidence-store.ts'
import { createEvidenceKeeper } from '../../../src/rollout/evidence/keep-evidence.ts'
import type { KeptEvidence } from '../../../src/rollout/evidence/read-kept.ts'
import { makeFolder } from '../../journal/open-sqlite.ts'
import { type DatabaseClock, DAY_MS, openEvidence, START_MS } from '../../rollout/evidence/open-evidence.ts'
import { keyOf } from '../../rollout/store/open-stores.ts'
import { createManualClock, type ManualClock } from '../../support/manual-clock.ts'
import { startDuties } from '../../support/start-duties.ts'
import { differing, exchangeOf, keepExchange, recordOf } from './exchanges.ts'

const thresholds = { limit: 0.005, confidence: 0.95, schoolShare: 0.2 }

interface Running {
  readonly live: {
    readonly compared: (exchange: ComparedExchange) => void
    readonly stop: () => Promise<void>
  }
  readonly store: EvidenceStore
  readonly clock: ManualClock
  readonly database: DatabaseClock
  readonly failures: string[]
  readonly kept: [string, number, boolean][]
  readonly folder: string
  /** Makes later writes of evidence fail. */
  readonly break: (isBroken: boolean) => void
  readonly figures: () => Promise<ComparisonFigures>
}

async function run(): Promise<Running> {
  const folder = await makeFolder()
  const database = { nowMs: START_MS }
  const { store } = await openEvidence(`sqlite:${join(folder, 'journal.db')}`, database, {
    keys: [keyOf('a')],
  })
  const clock = createManualClock()
  const kept: [string, number, boolean][] = []
  let isBroken = false
  const keeper = createEvidenceKeeper({
    store: {
      ...store,
      add: async (period, entries) => {
        if (isBroken) throw new AdapterError('ADP_JOURNAL_UNAVAILABLE', 'gone')
        return store.add(period, entries)
      },
    },
    onKept: (partner, checks, isKept) => kept.push([partner, checks, isKept]),
  })
  const { failures, stop } = startDuties(keeper.duties, clock)
  const live = { ...keeper, stop, compared: (exchange: ComparedExchange) => keepExchange(keeper, exchange) }
  const figures = async (): Promise<ComparisonFigures> =>
    toFigures((await store.read('acme'))[0], 'reply', thresholds)
  return {
    live,
    store,
    clock,
    database,
    failures,
    kept,
    folder,
    break: (broken) => (isBroken = broken),
    figures,
  }
}

const countsOf = (kept: KeptEvidence | undefined): Record<string, number> =>
  Object.fromEntries([...(kept?.counts ?? [])].sort())

describe('the evidence of live comparison', () => {
  it('contains nothing but counts by kind, check, verdict, field, rule, code and day', async () => {
    const { live, store } = await run()
    live.compared(
      exchangeOf(
        [
          recordOf('ann', { traits: ['late', 'comment'] }),
          recordOf('ann', { ...differing, code: 'N', codeClass: 'code:absent' }),
          recordOf('ben', {
            verdict: 'equivalent',
            equivalences: [{ rule: 'own rule, 1', path: 'RecordedOn' }],
          }),
          recordOf('cas', { verdict: 'unknown', code: 'L', traits: ['correction'] }),
          recordOf('fay', { verdict: 'unchecked', code: 'X', traits: ['late'] }),
          recordOf('dot', { day: undefined, codeClass: undefined, code: undefined }),
          recordOf('eve', { day: '1999-01-01' }),
        ],
        { delaysMs: [90, 2_000, 10 ** 9] },
      ),
    )
    await live.stop()
    const [kept] = await store.read('acme')
    expect(countsOf(kept)).toEqual({
      'exchange batch reply compared': 1,
      'schoolDay 2026-11-02 reply': 1,
      'verdict batch reply same': 3,
      'verdict batch reply differs': 1,
      'verdict batch reply equivalent': 1,
      'verdict batch reply unknown': 1,
      'difference Comment value length%3A10-20 length%3A1-10': 1,
      'difference MinutesLate null number null': 1,
      'rule own%20rule%2C%201 RecordedOn': 1,
      'codeClass code%3Apresent same': 2,
      'codeClass code%3Aabsent differs': 1,
      'codeClass code%3Apresent equivalent': 1,
      'codeClass code%3Apresent unknown': 1,
      'comparedOn 2026-11-02 same': 3,
      'comparedOn 2026-11-02 differs': 1,
      'comparedOn 2026-11-02 equivalent': 1,
      'comparedOn 2026-11-02 unknown': 1,
      'comparedAt 12 same': 3,
      'comparedAt 12 differs': 1,
      'comparedAt 12 equivalent': 1,
      'comparedAt 12 unknown': 1,
      [`code reply ${codeName('/')} compared`]: 3,
      [`code reply ${codeName('N')} compared`]: 1,
      [`code reply ${codeName('L')} seen`]: 1,
      [`code reply ${codeName('X')} unchecked`]: 1,
      'unchecked batch reply': 1,
      'trait reply late': 1,
      'trait reply comment': 1,
      'uncounted unnamed': 1,
      'delay 100': 1,
      'delay 2000': 1,
      'delay null': 1,
    })
    // The pairs belong to Ann, Ben and Eve. The record of Cas is unknown, the record of Dot has no day, and V2 refused the record of Fay.
    expect(kept?.periods).toEqual([{ pairs: 3, differing: 1, schools: [[3], [], [], [], []] }])
  })

  it('groups differences by the day of the comparison, so that a repair has an effect on the next day', async () => {
    const { live, store, database } = await run()
    for (const record of [differing, differing, {}]) {
      live.compared(exchangeOf([recordOf('ann', { ...record, day: '2026-10-30' }), recordOf('ben')]))
      await live.stop()
      database.nowMs += DAY_MS
    }
    const counted = await store.counts('acme')
    expect(counted.map(({ counts }) => counts)).toEqual(
      (await store.read('acme')).map(({ counts }) => counts),
    )
    expect(latestRuns(await store.counts())).toEqual(latestRuns(counted))
    const [{ from, to, days } = expect.fail()] = latestRuns(counted)
    expect([from, to]).toEqual(['2026-11-02', '2026-11-04'])
    expect(days.map(({ name, verdicts }) => [name, verdicts.same, verdicts.differs])).toEqual([
      ['2026-11-02', 1, 1],
      ['2026-11-03', 1, 1],
      ['2026-11-04', 2, 0],
    ])
    expect(toTrend(counted)).toEqual([
      { day: '2026-11-02', compared: 5, differing: 5 },
      { day: '2026-11-03', compared: 5, differing: 5 },
      { day: '2026-11-04', compared: 5, differing: 0 },
    ])
  })

  it('gives an attendance code the same fingerprint in upper and in lower case', async () => {
    const { live, figures } = await run()
    const code = 'ABCDEF00-0000-4000-8000-00000000000B'
    live.compared(exchangeOf([recordOf('ann', { code: code.toLowerCase() }), recordOf('ben', { code: '' })]))
    await live.stop()
    expect((await figures()).codes).toEqual([codeFingerprint(code)])
    expect(codeFingerprint('00000000-0000-0000-0000-000000000000')).toBeUndefined()
  })

  it('counts a learner and day once even if a client repeats the record ten thousand times', async () => {
    const { live, clock, figures } = await run()
    for (let batch = 0; batch < 50; batch += 1)
      live.compared(
        exchangeOf(
          Array.from({ length: 200 }, () => recordOf('ann')),
          { fingerprint: `${batch}` },
        ),
      )
    live.compared(exchangeOf([recordOf('ANN')]))
    await clock.pass(5_000)
    await expect.poll(async () => (await figures()).sampled).toBe(51)
    await live.stop()
    expect(await figures()).toMatchObject({ pairs: 1, countedPairs: 0, bound: 1, days: 1 })
  })

  it('counts a resent batch once', async () => {
    const { live, store, figures } = await run()
    const batch = exchangeOf([recordOf('ann'), recordOf('ben')], { fingerprint: 'digest' })
    for (let time = 0; time < 20; time += 1) live.compared(batch)
    live.compared({ ...batch, check: 'readBack' })
    await live.stop()
    live.compared(batch)
    await live.stop()
    const [kept] = await store.read('acme')
    expect(kept?.counts.get('verdict batch reply same')).toBe(2)
    expect(kept?.counts.get('verdict batch readBack same')).toBe(2)
    expect(await figures()).toMatchObject({ sampled: 1, pairs: 2, comparedShare: 1 })
  })

  it('counts a difference even if the record names no learner or no day', async () => {
    const { live, figures } = await run()
    const unnamed = recordOf('ann', { ...differing, learner: undefined })
    const undated = recordOf('ben', { ...differing, day: undefined })
    live.compared(exchangeOf([recordOf('eve'), unnamed, undated]))
    await live.stop()
    expect(await figures()).toMatchObject({ pairs: 1, differing: 2 })
  })

  it('computes the compared share from the comparisons of replies, and not from those of reads', async () => {
    const { live, figures } = await run()
    for (let time = 0; time < 50; time += 1)
      live.compared(exchangeOf([recordOf('eve')], { kind: 'readFilter', check: 'answers' }))
    live.compared(exchangeOf([recordOf('ann')]))
    live.compared(exchangeOf([]))
    await live.stop()
    expect(await figures()).toMatchObject({ sampled: 2, comparedShare: 0.5 })
  })

  it('counts a record that V2 refused as unchecked, neither as compared nor as missed', async () => {
    const { live, store, figures } = await run()
    const refused = recordOf('ben', { verdict: 'unchecked', code: 'X' })
    live.compared(exchangeOf([recordOf('ann'), refused]))
    live.compared(exchangeOf([refused]))
    // The code of a mark that could not be read remains to be compared, even if V2 refused another record with this code.
    live.compared(exchangeOf([recordOf('cas', { verdict: 'unchecked', code: 'L' })]))
    live.compared(exchangeOf([recordOf('cas', { verdict: 'unknown', code: 'L' })]))
    await live.stop()
    expect(await figures()).toMatchObject({
      ...{ sampled: 2, comparedShare: 0.5, pairs: 1, differing: 0, unchecked: 3 },
      codes: [codeFingerprint('/')],
      codesNotCompared: [codeFingerprint('L')],
      codesUnchecked: [codeFingerprint('X')],
    })
    const counted = await store.counts('acme')
    expect(latestRuns(counted)[0]).toMatchObject({
      ...{ offered: 5, compared: 2, skipped: 3 },
      verdicts: { same: 1, unknown: 1 },
    })
    expect(toTrend(counted)).toEqual([{ day: '2026-11-02', compared: 5, differing: 0 }])
  })

  it('does not count the codes, learners and days of a batch whose reply shows no outcomes', async () => {
    const { live, figures } = await run()
    const equivalences = [{ rule: 'no-outcome-shown', path: 'part' }]
    const hidden = recordOf('ann', { verdict: 'equivalent', equivalences, traits: ['late'], day: undefined })
    live.compared(exchangeOf([hidden]))
    await live.stop()
    expect(await figures()).toMatchObject({ codes: [], traits: [], days: 0, pairs: 0 })
  })

  it('counts pairs of learner and day from one school as at most a fifth of all pairs', async () => {
    const { live, figures } = await run()
    const school = (unit: string, learners: number): ComparedExchange =>
      exchangeOf(
        Array.from({ length: learners }, (_, at) => recordOf(`${unit} ${at}`)),
        { unit },
      )
    live.compared(school('large', 1_980))
    for (const unit of ['a', 'b', 'c', 'd', 'e']) live.compared(school(unit, 4))
    await live.stop()
    expect(await figures()).toMatchObject({ pairs: 2_000, countedPairs: 25, schools: 6 })
  })

  it('counts an exchange as not compared if the journal did not store the result, and reports the failing journal once', async () => {
    const { live, clock, failures, kept, figures, break: broken } = await run()
    broken(true)
    for (let time = 0; time < 3; time += 1) {
      live.compared(exchangeOf([recordOf('ann')]))
      await clock.pass(5_000)
      await expect.poll(() => kept.length).toBe(time + 1)
    }
    expect(failures).toEqual(['evidence: ADP_JOURNAL_UNAVAILABLE'])
    expect(kept).toEqual(Array.from({ length: 3 }, () => ['acme', 1, false]))
    broken(false)
    live.compared(exchangeOf([]))
    live.compared(exchangeOf([recordOf('ann'), recordOf('ben', { verdict: 'unknown' })]))
    // This exchange exceeds the number of records that may wait to be stored.
    live.compared(exchangeOf(Array.from({ length: 20_000 }, () => recordOf('cas'))))
    await clock.pass(5_000)
    await expect.poll(() => kept.length).toBe(4)
    await live.stop()
    expect(failures).toHaveLength(1)
    // One exchange of six was compared, and half of its records.
    expect(await figures()).toMatchObject({ sampled: 6, comparedShare: 1 / 12, pairs: 1 })
  })

  it('stores no id, name, code or value in the files of the journal', async () => {
    const { live, folder, store } = await run()
    const marker = 'MARKER-7f3a'
    live.compared(
      exchangeOf(
        [
          recordOf(`${marker}-learner`, {
            ...differing,
            code: `${marker}-code`,
          }),
        ],
        { unit: `${marker}-school`, fingerprint: `${marker}-digest` },
      ),
    )
    await live.stop()
    expect((await store.read('acme'))[0]?.periods).toEqual([
      { pairs: 1, differing: 1, schools: [[1], [], [], [], []] },
    ])
    const files = await Promise.all((await readdir(folder)).map((file) => readFile(join(folder, file))))
    for (const form of [marker, marker.toLowerCase(), encodeURIComponent(marker)])
      for (const encoding of ['utf8', 'utf16le', 'hex', 'base64'] as const) {
        const text =
          encoding === 'utf8' || encoding === 'utf16le'
            ? Buffer.from(form, encoding)
            : Buffer.from(form).toString(encoding).replace(/=+$/, '')
        expect(files.some((file) => file.includes(text))).toBe(false)
      }
  })
})

function codeName(code: string): string {
  return encodeURIComponent(codeFingerprint(code) ?? '')
}
