import { type Differ, type DifferName, differNames, loadDiffer } from './differs.ts'
import type { Row } from './report.ts'
import { interleave, median, medianRatio } from './rounds.ts'

const sizes = [
  { records: 2_000, rounds: 9, times: 10 },
  { records: 200_000, rounds: 3, times: 1 },
] as const

/** The largest acceptable processor time for 2,000 records, in ms. */
const AIM_MS = 4

/** Compares our differ with JSON differs, for equal rows and for rows with one more row at the head. */
export async function benchCompareDiff(): Promise<Row[]> {
  const differs = new Map<DifferName, Differ>()
  for (const name of differNames) differs.set(name, await loadDiffer(name))
  const rows: Row[] = []
  for (const { records, rounds, times: repeats } of sizes) {
    const v2 = marks(1, records)
    for (const [what, v3] of [
      ['equal', marks(1, records)],
      ['a row inserted at the head', marks(0, records)],
    ] as const) {
      const found = new Map<DifferName, number>()
      const times = await interleave(differNames, rounds, (name) => {
        const differ = differs.get(name)
        if (differ === undefined) throw new Error(`no differ ${name}`)
        // Measures processor time and not elapsed time, because other programs may use the core in between.
        const start = process.cpuUsage()
        for (let time = 0; time < repeats; time += 1) found.set(name, differ(v2, v3))
        const { user, system } = process.cpuUsage(start)
        return Promise.resolve((user + system) / 1_000 / repeats)
      })
      const expected = v3.length - v2.length
      if (found.get('markbridge') !== expected)
        throw new Error(`found ${found.get('markbridge')} of ${expected}`)
      const own = times.get('markbridge') ?? []
      for (const name of differNames) {
        const values = times.get(name) ?? []
        const isOwn = name === 'markbridge'
        const hasAim = isOwn && records === 2_000
        rows.push({
          bench: `compare ${records}, ${what}`,
          candidate: name,
          value: `${median(values).toFixed(1)} ms, ${found.get(name)} differences`,
          ratio: isOwn ? '' : `markbridge ${medianRatio(values, own).toFixed(1)}x`,
          aim: hasAim ? `< ${AIM_MS} ms` : '',
          met: hasAim ? median(values) < AIM_MS : undefined,
        })
      }
    }
  }
  return rows
}

/** Returns the marks `from` to `to`, parsed from JSON, so that two lists share no strings. */
function marks(from: number, to: number): readonly unknown[] {
  const rows = Array.from({ length: to - from + 1 }, (_, at) => mark(from + at))
  return JSON.parse(JSON.stringify(rows)) as unknown[]
}

const guid = (kind: number, index: number): string =>
  `${kind.toString(16).padStart(8, '0')}-0000-4000-8000-${index.toString(16).padStart(12, '0')}`

function mark(index: number): object {
  const start = new Date(Date.UTC(2026, 0, 5, 9) + Math.floor(index / 720) * 43_200_000).toISOString()
  return {
    ExternalID: guid(10, index),
    Present: index % 20 !== 0,
    Absent: index % 20 === 0,
    RecordedOn: start,
    ChangeProcessName: 'Register',
    AttendableEventStart: start,
    RecordedBy: guid(11, index % 30),
    Learner: guid(12, index % 720),
    AttendableEvent: guid(13, Math.floor(index / 720)),
    SchoolAttendanceCode: guid(14, index % 20),
    MinutesLate: index % 50 === 0 ? 7 : null,
    Comment: index % 40 === 0 ? 'Arrived after registration' : null,
    AttendanceHistorys: [],
  }
}
