import { recordStates } from '../../journal/index.ts'
import type { RangeCounts } from './counts.ts'
import type { Range, Scope, Traffic, Trouble } from './port.ts'
import { type Db, rowsOf } from './schema.ts'

type Rows = RangeCounts['rows']
/** Returns the number of bad calls if the interval is bad, 0 if the interval is good, and `undefined` if it has no calls to judge. */
type Judge = (rows: Rows) => number | undefined

const sumOf = (rows: Rows): number => rows.reduce((sum, { count }) => sum + count, 0)

/** Creates the judge of intervals in which more than the fraction `share` of the calls to one side (V2 or V3) had one of `statuses`. */
const judgeCalls =
  (side: 'v2' | 'v3', statuses: readonly string[], share: number): Judge =>
  (rows) => {
    const calls = rows.filter(({ words: [name] }) => name === side)
    const bad = sumOf(calls.filter(({ words: [, status = ''] }) => statuses.includes(status)))
    return calls.length === 0 ? undefined : bad > share * sumOf(calls) ? bad : 0
  }

const failures = ['5xx', 'none']
const sides = {
  v3Fails: judgeCalls('v3', failures, 0.5),
  // The adapter keeps to `callsPerSecond`, so V3 should answer few calls with 429.
  v3Throttles: judgeCalls('v3', ['429'], 0.1),
  v2Fails: judgeCalls('v2', failures, 0.5),
} as const

const credentialKinds = ['denied', 'ownDenied', 'noToken'] as const
type CredentialKind = (typeof credentialKinds)[number]

/**
 * Creates the judge of denied credentials and missing tokens. Credentials that V3 accepts later are valid again. A confirmed mark does not
 * count as acceptance, because V2 may have confirmed the mark.
 */
const judgeDenials =
  (kind: CredentialKind, partner: string): Judge =>
  (rows) => {
    const own = (wanted: string) =>
      sumOf(rows.filter(({ words: [name, id] }) => name === wanted && id === partner))
    return own(kind) || (own('accepted') > 0 ? 0 : undefined)
  }

/** The time in milliseconds after which a trouble ends if no call or denial has followed. */
const LATELY_MS = 300_000

interface Run {
  readonly count: number
  readonly sinceMs: number
  /** True if the bad intervals may have begun before the range. */
  readonly isCut: boolean
}

/** Finds the unbroken run of bad intervals at the end of a range. Returns `undefined` if the latest interval that can be judged is good. */
function findRun({ rows, points, fromMs, stepMs }: RangeCounts, judge: Judge): Run | undefined {
  const byIndex = Map.groupBy(rows, ({ index }) => index)
  let [count, first]: [number, number | undefined] = [0, undefined]
  let isCut = true
  for (let index = points - 1; index >= 0 && isCut; index -= 1) {
    const bad = judge(byIndex.get(index) ?? [])
    const isOver = first === undefined && (points - index) * stepMs > Math.max(LATELY_MS, stepMs)
    if (bad === 0 || isOver) isCut = false
    else if (bad !== undefined) [count, first] = [count + bad, index]
  }
  return first === undefined ? undefined : { count, sinceMs: fromMs + first * stepMs, isCut }
}

/** Returns the present troubles. `read` returns the counts of a time range. */
export async function readTrouble(
  db: Db,
  read: (range: Range) => Promise<RangeCounts>,
  scope: Scope,
): Promise<readonly Trouble[]> {
  const live = await read('live')
  const denials = new Map(
    live.rows.flatMap(({ words: [word, partner = ''] }) =>
      credentialKinds.flatMap((kind) =>
        kind === word ? [[`${kind} ${partner}`, { kind, partner }] as const] : [],
      ),
    ),
  )
  const judged = [
    ...(['v3Fails', 'v3Throttles', 'v2Fails'] as const).map((kind) => ({ kind, partner: undefined, judge: sides[kind] })),
    ...[...denials.values()].map((one) => ({ ...one, judge: judgeDenials(one.kind, one.partner) })),
  ] // prettier-ignore
  const found: Trouble[] = []
  for (const { kind, partner, judge } of judged) {
    let run = findRun(live, judge)
    if (run === undefined) continue
    // Bad intervals that fill the range may have begun earlier, so longer ranges are searched too.
    for (const range of ['hour', 'day', 'week'] as const) {
      const longer: Run | undefined = run.isCut ? findRun(await read(range), judge) : undefined
      if (longer !== undefined && longer.count > run.count) run = longer
    }
    found.push({ kind, partner, count: run.count, sinceMs: run.sinceMs })
  }
  const all = [...found, ...(await readWaiting(db))]
  return all.filter(({ partner }) => partner === undefined || scope === 'all' || scope.includes(partner))
}

/** Returns the times of a range in which V3 failed. Intervals without calls do not end an outage. */
export function findOutages({ rows, fromMs, stepMs }: RangeCounts): Traffic['outages'] {
  const outages: { fromMs: number; untilMs: number }[] = []
  let isDown = false
  for (const [index, own] of Map.groupBy(rows, (row) => row.index)) {
    const bad = sides.v3Fails(own)
    if (bad === undefined) continue
    const [startMs, endMs] = [fromMs + index * stepMs, fromMs + (index + 1) * stepMs]
    const last = outages.at(-1)
    if (bad > 0 && isDown && last !== undefined) last.untilMs = endMs
    else if (bad > 0) outages.push({ fromMs: startMs, untilMs: endMs })
    isDown = bad > 0
  }
  return outages
}

/** Returns the troubles of records that wait for a client, the adapter or an operator. Dead letters are counted in any state. */
async function readWaiting(db: Db): Promise<readonly Trouble[]> {
  const rows = await rowsOf<
    Omit<Trouble, 'kind'> & { readonly partner: string; readonly state: number | undefined }
  >(db)`
    select b.partner, r.state, count(*) as count, min(b.received_ms) as "sinceMs" from (
      select batch, state from journal_records where active = 1
      union all
      select batch, null from journal_records where dead_letter = 1) r
    join journal_batches b on b.id = r.batch group by b.partner, r.state`
  return rows.flatMap(({ state, ...row }): readonly Trouble[] => {
    const kind = state === undefined ? 'deadLetters' : recordStates[state]
    const isWaiting =
      kind === 'notApplied' || kind === 'unknown' || kind === 'parked' || kind === 'deadLetters'
    return isWaiting ? [{ kind, ...row }] : []
  })
}
