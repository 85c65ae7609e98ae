import { ofEachState, recordStates } from '../../../src/journal/index.ts'
import type {
  BatchDetails,
  BatchRow,
  ConsoleData,
  Overview,
  RecordRow,
  Scope,
} from '../../../src/console/data/port.ts'

export const NOW_MS = Date.UTC(2026, 10, 26, 9, 30)

/** HTML markup that a client can write into a batch, and a service into a response. */
export const MARKUP = `"><script>document.title='injected'</script><img src=x onerror="document.title='injected'">`

const states = ofEachState(() => 0)

export const batchRows: readonly BatchRow[] = [
  {
    ...{
      batch: 42,
      partner: 'acme',
      receivedMs: NOW_MS - 90_000,
      boundary: MARKUP,
      servedBy: 'v3',
      records: 30,
    },
    states: { ...states, confirmed: 26, refused: 1, notApplied: 1, unknown: 1, parked: 1 },
  },
  {
    ...{
      batch: 41,
      partner: 'zenith',
      receivedMs: NOW_MS - 200_000,
      boundary: 'batch_36522ad7',
      servedBy: 'v2',
    },
    ...{ records: 4, states: { ...states, confirmed: 4 } },
  },
]

const batchOf = (row: BatchRow): BatchDetails => ({
  ...row,
  ...{ instance: 1, answered: true, hasRequest: true, deadLetters: 1, unreadable: undefined },
  timeline: [
    {
      ...{ atMs: row.receivedMs + 900, lastMs: row.receivedMs + 900, times: 1 },
      kind: 'readBack',
      instance: 1,
      positions: [[3, 3]],
      reason: 'connectionLost',
    },
    {
      ...{ atMs: row.receivedMs + 1_200, lastMs: row.receivedMs + 30_000, times: 12 },
      kind: 'unknown',
      instance: 1,
      positions: [[3, 3]],
      reason: 'notReadBack',
    },
    {
      ...{ atMs: row.receivedMs + 40_000, lastMs: row.receivedMs + 40_000, times: 1 },
      ...{ kind: 'takenOver', instance: 2, positions: [], reason: undefined },
    },
    {
      ...{ atMs: row.receivedMs + 60_000, lastMs: row.receivedMs + 60_000, times: 1 },
      ...{ kind: 'replayed', instance: 2, positions: [[0, 29]], reason: MARKUP },
    },
  ],
})

export const recordsOf = ({ batch, partner, receivedMs, records }: BatchRow): readonly RecordRow[] =>
  Array.from({ length: records }, (_, position): RecordRow => {
    const state =
      position === 3
        ? 'unknown'
        : position === 5
          ? 'parked'
          : position === 7 || position === 8
            ? 'refused'
            : 'confirmed'
    const deadLetter = position === 7
    return {
      ...{ batch, position, partner, receivedMs, state, deadLetter },
      contentId: position === 4 ? MARKUP : String(position + 1),
      reason: {
        unknown: 'notReadBack',
        parked: 'unavailable',
        refused: 'ATT_VAL_3',
        confirmed: undefined,
        open: undefined,
      }[state],
      retry: state === 'parked' ? NOW_MS + 60_000 : undefined,
      attempts: state === 'confirmed' ? 1 : 3,
      superseded: false,
      settledMs: state === 'parked' ? undefined : receivedMs + 400 + position,
      instance: 1,
      remedy: deadLetter
        ? 'The service does not know the SchoolAttendanceCode. Correct it in the client.'
        : undefined,
    }
  })

const inScope = (scope: Scope, partner: string): boolean => scope === 'all' || scope.includes(partner)

export function sampleOverview(scope: Scope): Overview {
  const points = 60
  const wave = (size: number, at: number): number => Math.max(0, Math.round(size * (1 + Math.sin(at / 5))))
  const seriesOf = (counts: Readonly<Record<string, (at: number) => number>>) =>
    Object.entries(counts).map(([name, countAt]) => ({ name, counts: Array.from({ length: points }, (_, at) => countAt(at)) })) // prettier-ignore
  const marks = seriesOf({ confirmed: (at) => wave(110, at), ...Object.fromEntries(['refused', 'notApplied', 'unknown', 'parked'].map((state) => [state, (at) => (at === 30 ? 4 : 0)])) }) // prettier-ignore
  return {
    atMs: NOW_MS,
    traffic: {
      fromMs: NOW_MS - points * 60_000,
      stepMs: 60_000,
      points,
      marks: recordStates.flatMap((name) => marks.filter((one) => one.name === name).map(({ counts }) => ({ name, counts }))), // prettier-ignore
      calls: seriesOf({
        '2xx': (at) => wave(120, at),
        '4xx': (at) => wave(3, at),
        '429': (at) => (at > 40 && at < 46 ? 14 : 0),
        '5xx': (at) => (at === 50 ? 900 : 0),
      }),
      outages: [{ fromMs: NOW_MS - 600_000, untilMs: NOW_MS - 540_000 }],
    },
    reportedMs: NOW_MS - 5_000,
    balances: [
      {
        ...{
          partner: 'acme',
          received: 20_034,
          confirmed: 19_998,
          refused: 12,
          notApplied: 9,
          unknown: 4,
          parked: 7,
          open: 4,
        },
        ...{ holds: true, checkedMs: NOW_MS - 20_000, deadLetters: 3 },
      },
      {
        ...{ partner: 'zenith', ...states, received: 871, confirmed: 870 },
        ...{ holds: false, checkedMs: NOW_MS - 20_000, deadLetters: 0 },
      },
    ].filter(({ partner }) => inScope(scope, partner)),
    instances: [
      { instance: 1, host: 'mb-0', pid: 17, leaseUntilMs: NOW_MS + 8_000, state: 'live', openBatches: 2 },
      { instance: 2, host: 'mb-1', pid: 17, leaseUntilMs: NOW_MS - 60_000, state: 'lost', openBatches: 1 },
    ],
    index: { waiting: 0, unreadable: [{ reason: 'onV2', batches: 12 }], lostSteps: 0 },
    trouble: [
      { kind: 'v3Fails', partner: undefined, count: 412, sinceMs: NOW_MS - 180_000 } as const,
      ...(['v3Throttles', 'v2Fails'] as const).map((kind) => ({
        kind,
        partner: undefined,
        count: 3,
        sinceMs: NOW_MS - 60_000,
      })),
      ...(['denied', 'ownDenied', 'noToken', 'notApplied', 'unknown', 'parked', 'deadLetters'] as const).map(
        (kind, at) => ({
          ...{ kind, partner: 'acme', count: 9 - at, sinceMs: NOW_MS - 170_000 + at },
        }),
      ),
    ].filter(({ partner }) => partner === undefined || inScope(scope, partner)),
  }
}

/** Creates the data of a console with two partners. `calls` collects the changes that the console requests. */
export function createSampleData(calls: string[]): ConsoleData {
  const letters = batchRows.flatMap(recordsOf).filter(({ deadLetter }) => deadLetter)
  const parked = batchRows.flatMap(recordsOf).filter(({ state }) => state === 'parked')
  return {
    overview: async (_range, scope) => sampleOverview(scope),
    hash: async (_kind, typed) => (/^[0-9a-f-]{36}$/i.test(typed) ? '1a2b3c4d5e6f7' : undefined),
    search: async (
      { batch, boundary, partner, contentId, learner, fromMs = 0, untilMs = Infinity },
      scope,
    ) => {
      const rows = batchRows.filter(
        (row) =>
          inScope(scope, row.partner) &&
          row.receivedMs >= fromMs &&
          row.receivedMs < untilMs &&
          (partner ?? row.partner) === row.partner &&
          (batch ?? row.batch) === row.batch &&
          (boundary ?? row.boundary) === row.boundary,
      )
      if ((contentId ?? learner) === undefined) return { kind: 'batches', batches: rows, next: undefined }
      const records = rows.flatMap(recordsOf).filter((one) => (contentId ?? one.contentId) === one.contentId)
      return { kind: 'records', records, next: undefined }
    },
    batch: async (batch, scope) => {
      const row = batchRows.find((one) => one.batch === batch && inScope(scope, one.partner))
      return row && batchOf(row)
    },
    records: async (batch, { from = 0, limit = 100, state }) => {
      const row = batchRows.find((one) => one.batch === batch)
      const all =
        row === undefined ? [] : recordsOf(row).filter((record) => (state ?? record.state) === record.state)
      return {
        records: all.slice(from, from + limit),
        next: from + limit < all.length ? from + limit : undefined,
      }
    },
    waiting: async ({ kind }, scope) => {
      const records = (kind === 'deadLetters' ? letters : parked).filter(({ partner }) =>
        inScope(scope, partner),
      )
      const reasons = Map.groupBy(records, ({ reason = '' }) => reason)
      return {
        records,
        reasons: [...reasons].map(([reason, own]) => ({
          ...{ reason, state: own[0]?.state ?? ('unknown' as const), records: own.length },
        })),
        next: undefined,
      }
    },
    retry: async (batch) => {
      calls.push(`retry ${batch}`)
      return 2
    },
    dismiss: async (batch, positions) => {
      calls.push(`dismiss ${batch} ${positions?.join() ?? 'all'}`)
      return positions?.length ?? 1
    },
  }
}
