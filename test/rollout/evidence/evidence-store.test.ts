import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'

import { type KyselyPlugin, sql } from 'kysely'
import { describe, expect, it } from 'vitest'

import { toEvidenceKey } from '../../../src/rollout/evidence/evidence-key.ts'
import { createEvidenceStore, MAX_NAMES, MAX_PAIRS } from '../../../src/rollout/evidence/evidence-store.ts'
import type { CountedEvidence } from '../../../src/rollout/evidence/read-kept.ts'
import { makeFolder } from '../../journal/open-sqlite.ts'
import { eachDatabase } from '../../support/each-database.ts'
import { keyOf, rowsIn, run } from '../store/open-stores.ts'
import { addTo, DAY_MS, entryOf, openEvidence, scope, START_MS } from './open-evidence.ts'

const databases = eachDatabase()

const byScope = (one: CountedEvidence, other: CountedEvidence): number =>
  JSON.stringify(one.scope) < JSON.stringify(other.scope) ? -1 : 1

type KeyRow = { readonly hash_key: Uint8Array }

describe.each(databases)('the evidence store in %s', (_name, { test }) => {
  test('counts each pair of learner and day once for each school and check', async (url) => {
    const { store } = await openEvidence(url, { nowMs: START_MS })
    expect(await store.read('acme')).toEqual([])
    await addTo(store, ['ann/02', 'ben/02', 'ann/03'])
    await addTo(store, ['ann/02', '!ben/02'], { checks: 2 })
    await addTo(store, ['cas/02'], { school: 'south', checks: 3 })
    expect(await store.read('acme')).toEqual([
      {
        scope,
        sinceMs: START_MS,
        lastMs: START_MS,
        counts: new Map([['verdict batch reply same', 6]]),
        periods: [{ pairs: 4, differing: 1, schools: [[3, 1], [2, 1], [], [], []] }],
        damaged: false,
      },
    ])
    expect(await store.read('other')).toEqual([])
  })

  test('adds the counts of a request once even if the request is added again, in the same call or later', async (url) => {
    const { store } = await openEvidence(url, { nowMs: START_MS })
    const key = toEvidenceKey(await store.key(scope))
    const again = entryOf(key, ['ann/02'], { request: 'digest-1' })
    await store.add(key.period, [again, again])
    await store.add(key.period, [again, entryOf(key, ['!ann/02'], { request: 'digest-1' })])
    const [kept] = await store.read('acme')
    expect(kept?.counts).toEqual(new Map([['verdict batch reply same', 1]]))
    // The pair of a repeated request is still marked as differing.
    expect(kept?.periods).toEqual([{ pairs: 1, differing: 1, schools: [[1], [], [], [], []] }])
  })

  test('adds up the evidence that two instances store at the same time', async (url) => {
    const clock = { nowMs: START_MS }
    const [one, other] = [await openEvidence(url, clock), await openEvidence(url, clock)]
    await Promise.all(
      Array.from({ length: 20 }, (_, at) =>
        addTo(at % 2 === 0 ? one.store : other.store, [`learner-${at}/02`, 'both/02'], {
          request: `digest-${at}`,
        }),
      ),
    )
    const [kept, ...more] = await other.store.read('acme')
    expect(more).toEqual([])
    expect(kept?.counts.get('verdict batch reply same')).toBe(40)
    expect(kept?.periods).toEqual([{ pairs: 21, differing: 0, schools: [[21], [], [], [], []] }])
  })

  test('stores the evidence of each revision and stage separately', async (url) => {
    const { store } = await openEvidence(url, { nowMs: START_MS })
    const hashes = new Set<string>()
    for (const own of [scope, { ...scope, revision: 4 }, { ...scope, stage: 'canary' as const }]) {
      const key = toEvidenceKey(await store.key(own))
      hashes.add(Buffer.from(key.hash('pair', 'ann/02')).toString('hex'))
      await store.add(key.period, [entryOf(key, ['ann/02'])])
    }
    expect(hashes.size).toBe(3)
    const kept = await store.read('acme')
    expect((await store.counts()).toSorted(byScope)).toEqual(
      kept
        .map(({ scope: own, sinceMs, lastMs, counts }) => ({ scope: own, sinceMs, lastMs, counts }))
        .toSorted(byScope),
    )
    expect(await store.counts('other')).toEqual([])
    expect(kept.map(({ scope: own }) => [own.revision, own.stage])).toEqual([
      [4, 'shadow'],
      [3, expect.any(String)],
      [3, expect.any(String)],
    ])
  })

  test('stores at most MAX_NAMES names in each group of counts', async (url) => {
    const { store } = await openEvidence(url, { nowMs: START_MS })
    const many = Object.fromEntries(Array.from({ length: MAX_NAMES + 50 }, (_, at) => [`day ${at}`, 1]))
    await addTo(store, [], { counts: many })
    await addTo(store, [], { counts: { ...many, 'verdict batch reply same': 1 } })
    const [kept] = await store.read('acme')
    expect(kept?.counts.size).toBe(MAX_NAMES + 1)
    expect(kept?.counts.get('day 1')).toBe(2)
  })

  test('adds nothing to a period whose key was destroyed', async (url) => {
    const clock = { nowMs: START_MS }
    const { store } = await openEvidence(url, clock)
    const key = toEvidenceKey(await store.key(scope))
    const entry = entryOf(key, ['ann/02'])
    expect(await store.add(key.period, [entry])).toBe(true)
    clock.nowMs += 90 * DAY_MS
    expect(await store.destroyExpired()).toBe(1)
    expect(await store.add(key.period, [entry])).toBe(false)
    expect(await store.destroyExpired()).toBe(0)
  })

  test('deletes the hashes of a period after 90 days, and keeps the counts', async (url) => {
    const clock = { nowMs: START_MS }
    const { store, database } = await openEvidence(url, clock)
    await addTo(store, ['ann/02', '!ben/02'], { request: 'digest-1' })
    const first = toEvidenceKey(await store.key(scope))
    expect([first.covers('2020-01-01'), first.covers('2027-01-30'), first.covers('2027-01-31')]).toEqual([
      true,
      true,
      false,
    ])
    clock.nowMs += 90 * DAY_MS - 1
    expect((await store.key(scope)).period).toBe(first.period)
    clock.nowMs += 1
    const second = toEvidenceKey(await store.key(scope))
    expect(second.period).not.toBe(first.period)
    expect([second.covers('2027-01-30'), second.covers('2027-01-31')]).toEqual([false, true])
    expect(second.hash('pair', 'ann/02')).not.toEqual(first.hash('pair', 'ann/02'))
    expect(await rowsIn(database.db, 'evidence_hashes')).toEqual([])
    await addTo(store, ['ann/91'])
    const [kept] = await store.read('acme')
    expect(kept).toMatchObject({
      sinceMs: START_MS,
      lastMs: clock.nowMs,
      counts: new Map([['verdict batch reply same', 3]]),
    })
    expect(kept?.periods).toEqual([
      { pairs: 1, differing: 0, schools: [[1], [], [], [], []] },
      { pairs: 2, differing: 1, schools: [[2], [], [], [], []] },
    ])
  })

  test('destroys a key that was created while the clock was years ahead', async (url) => {
    const clock = { nowMs: START_MS + 3_000 * DAY_MS }
    const { store } = await openEvidence(url, clock)
    await addTo(store, ['ann/02'])
    clock.nowMs = START_MS
    expect(await store.destroyExpired()).toBe(1)
    // The destroyed period covered this day, so the new period must not count pairs of this day again.
    const key = toEvidenceKey(await store.key(scope))
    expect(key.covers('2026-11-02')).toBe(false)
  })

  test('ignores damaged rows, and reports that the evidence is damaged', async (url) => {
    const { store, database } = await openEvidence(url, { nowMs: START_MS })
    const { db } = database
    await addTo(store, ['ann/02'])
    await run(db, `insert into evidence_counts values (1, 'verdict x', -4)`)
    expect((await store.read('acme'))[0]).toMatchObject({ damaged: true, periods: [{ differing: 0 }] })
    for (const kept of [
      '',
      'null',
      '{}',
      '{"pairs":0,"differing":-1,"schools":[[],[],[],[],[],[]]}',
      '{"pairs":0,"differing":0,"schools":[["x"],[],[],[],[],[]]}',
    ]) {
      await sql`update evidence_periods set kept = ${kept}, hash_key = null`.execute(db)
      expect((await store.read('acme'))[0]).toMatchObject({ damaged: true, periods: [] })
    }
  })

  test('encrypts the key of a period with the secret of the journal, so that a change of the journal keys does not affect it', async (url) => {
    const clock = { nowMs: START_MS }
    const { store, database } = await openEvidence(url, clock, { keys: [keyOf('a')] })
    const key = toEvidenceKey(await store.key(scope))
    const { db } = database
    const [row] = await rowsIn<KeyRow>(db, 'evidence_periods')
    expect(row?.hash_key).toHaveLength(60)
    const other = await openEvidence(url, clock, { keys: [keyOf('b'), keyOf('a')] })
    expect(toEvidenceKey(await other.store.key(scope)).hash('pair', 'ann/02')).toEqual(
      key.hash('pair', 'ann/02'),
    )
    const changed = Buffer.from(row?.hash_key ?? [])
    changed[40] = (changed[40] ?? 0) ^ 1
    await sql`update evidence_periods set hash_key = ${changed}`.execute(db)
    await expect(store.key(scope)).rejects.toMatchObject({ code: 'ADP_JOURNAL_DAMAGED' })
    // The key of one partner is not valid for another partner.
    await sql`update evidence_periods set hash_key = ${row?.hash_key}, partner = 'other'`.execute(db)
    await expect(store.key({ ...scope, partner: 'other' })).rejects.toMatchObject({
      code: 'ADP_JOURNAL_DAMAGED',
    })
  })
})

it('the evidence store counts the stored hashes of a period again only after every thousand new hashes', async () => {
  const { database } = await openEvidence(`sqlite:${await makeFolder()}/journal.db`, { nowMs: START_MS })
  let counted = 0
  const counting: KyselyPlugin = {
    transformQuery: ({ node }) => {
      if (node.kind === 'RawNode' && node.sqlFragments.join('').includes('count(school)')) counted += 1
      return node
    },
    transformResult: ({ result }) => Promise.resolve(result),
  }
  const store = createEvidenceStore({ ...database, db: database.db.withPlugin(counting) })
  const key = toEvidenceKey(await store.key(scope))
  for (let group = 0; group < 30; group += 1) {
    const pairs = Array.from({ length: 100 }, (_, at) => `learner-${group}-${at}/day`)
    expect(await store.add(key.period, [entryOf(key, pairs)])).toBe(true)
  }
  expect(counted).toBe(3)
})

describe('a period of the evidence store that is full', () => {
  it('accepts only pairs with a difference', async () => {
    const { store, database } = await openEvidence(`sqlite:${await makeFolder()}/journal.db`, {
      nowMs: START_MS,
    })
    const key = toEvidenceKey(await store.key(scope))
    await addTo(store, ['ann/02'])
    const school = key.hash('school', 'other')
    await sql`
      with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < ${MAX_PAIRS - 1})
      insert into evidence_hashes select ${key.period}, randomblob(16), ${school}, 2, 0 from numbers`.execute(
      database.db,
    )
    // Uses a new store, as a new process does, which has not counted the hashes yet.
    await createEvidenceStore(database).add(key.period, [entryOf(key, ['!ann/02', 'ben/02', '!cas/02'])])
    const [kept] = await store.read('acme')
    const [{ pairs, differing, schools } = { pairs: 0, differing: 0, schools: [] }] = kept?.periods ?? []
    expect({ pairs, differing, schools: schools[0] }).toEqual({
      pairs: MAX_PAIRS + 1,
      differing: 2,
      schools: [2],
    })
  })
})

describe('destroyExpired', () => {
  it('leaves no bytes of the expired key or of its hashes in the SQLite files', async () => {
    const folder = await makeFolder()
    const clock = { nowMs: START_MS }
    const { store, database } = await openEvidence(`sqlite:${folder}/journal.db`, clock)
    const key = toEvidenceKey(await store.key(scope))
    const learners = Array.from({ length: 400 }, (_, at) => `learner-${at}/02`)
    await store.add(key.period, [entryOf(key, learners, { request: 'digest-1' })])
    const [row] = await rowsIn<KeyRow>(database.db, 'evidence_periods')
    const hidden = [
      Buffer.from(row?.hash_key ?? []),
      ...learners.map((learner) => Buffer.from(key.hash('pair', learner))),
      Buffer.from(key.hash('school', 'north')),
      Buffer.from(key.hash('request', 'digest-1')),
    ]
    const found = async (): Promise<number> => {
      const files = await Promise.all((await readdir(folder)).map((file) => readFile(join(folder, file))))
      return hidden.filter((bytes) => files.some((file) => file.includes(bytes))).length
    }
    expect(await found()).toBe(hidden.length)
    clock.nowMs += 90 * DAY_MS
    await store.destroyExpired()
    expect(await found()).toBe(0)
    const { rows } = await sql<{ secure_delete: number }>`PRAGMA secure_delete`.execute(database.db)
    expect(rows).toEqual([{ secure_delete: 0 }])
  })
})
