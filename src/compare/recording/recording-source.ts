import { backgroundClock } from '../../clock.ts'
import type { Partner } from '../../partners/partner.ts'
import { parseJson } from '../../upstream/index.ts'
import { noBatchLimits } from '../../v2/index.ts'
import { type OwnRules, verdictOnly } from '../diff/findings.ts'
import { isMembers } from '../diff/values.ts'
import { MARKS_PATH } from '../live/ask-sides.ts'
import { compareAccepted } from '../live/check-marks.ts'
import { compareAnswers, toAsked } from '../live/compare-answers.ts'
import { openReply } from '../live/compare-reply.ts'
import type { ComparedRecord } from '../live/exchange.ts'
import { type FollowedMark, followMarks, type JudgedMark } from '../live/follow-marks.ts'
import { factsOf, markKey, recordedMs } from '../live/marks.ts'
import type { RunSource, RunStep } from '../run/run-comparison.ts'
import { type AdapterSide, readSidePage } from '../run/sides.ts'
import { fieldOf, type WireWrite } from '../wire-exchange.ts'
import type { RecordedExchange } from './exchange.ts'
import { readRecording } from './recording-files.ts'

interface RecordingSourceOptions {
  readonly partner: Partner
  readonly key: Uint8Array
  readonly rules: OwnRules | undefined
  /** V3 through the adapter, or `undefined` if no service is called. */
  readonly v3: Pick<AdapterSide, 'ask'> | undefined
  readonly nowMs: () => number
}

/**
 * Creates a source that compares recordings in order. For a write, it compares the recorded reply of V2 with the reply that the adapter
 * would have built if V3 stored the posted values (`assumedMark`). Nothing is posted. If `v3` is given, recorded reads are compared with
 * the current answers of V3. At the end the last mark of each learner and event that V2 accepted is compared with the mark on V3. The steps
 * throw the errors of `readRecording`.
 */
export function createRecordingSource(
  folders: readonly string[],
  options: RecordingSourceOptions,
): RunSource & { unaskedReads(): number } {
  const { v3, key, partner, rules } = options
  let [reads, done] = [0, 0]
  const marks = createWrittenMarks()
  const compare = async (exchange: RecordedExchange, signal: AbortSignal): Promise<RunStep> => {
    if (exchange.kind === 'batch' || exchange.kind === 'record') {
      let keys: readonly (string | undefined)[] = []
      const written: WireWrite = { ...exchange, kind: exchange.kind }
      const opened = await openReply(written, {
        ...{ partner, rules, limits: noBatchLimits, maxReplyBytes: Infinity },
        placesOf: (found) => {
          keys = found
          return []
        },
      })
      const accepted = opened.kind === 'open' ? opened.accepted : []
      marks.recordWrite(keys, accepted)
      if (opened.kind === 'skipped') return toSkipped(keys.length)
      const records = opened.kind === 'open' ? opened.judge(accepted.map(assumedMark)) : opened.records
      return toStep(records, exchange)
    } else if (v3 === undefined) reads += 1
    else return compareRead(exchange, exchange.kind, { ...options, v3 }, signal)
    return { records: [] }
  }
  return {
    unaskedReads: () => reads,
    progress: () => ({ done, total: folders.length }),
    steps: async function* (signal) {
      for (const folder of folders) {
        if (signal.aborted) break
        const step = await compare(await readRecording(folder, key), signal)
        done += 1
        yield step
      }
      if (v3 !== undefined && !signal.aborted) yield await compareMarks(marks, { ...options, v3 }, signal)
      return { kind: signal.aborted ? 'stopped' : 'done', failures: [], remainingCounts: [] }
    },
  }
}

const toSkipped = (records: number): RunStep => ({ records: [], skipped: Math.max(1, records) })

function toStep(records: readonly ComparedRecord[], { kind, receivedMs }: RecordedExchange): RunStep {
  const received = new Date(receivedMs).toISOString().slice(0, 10)
  return {
    records: records.flatMap(({ verdict, ...record }) =>
      verdict === 'unchecked'
        ? []
        : [
            [
              { ...record, verdict },
              { kind, day: record.day ?? received, codeClass: record.codeClass },
            ],
          ],
    ),
    skipped: records.filter(({ verdict }) => verdict === 'unchecked').length,
  }
}

/** The members whose values the service chooses. */
const ownMembers = ['ExternalID', 'RecordedOn', 'AttendableEventStart', 'RecordedBy', 'ChangeProcessName']

/**
 * Returns the mark that V3 is assumed to store: the values that the adapter would post, and V2's values for members that the service
 * chooses.
 */
function assumedMark(followed: FollowedMark): JudgedMark {
  const { sent, mark } = followed
  const posted = Object.entries(sent).filter(([, value]) => value !== undefined)
  const shown = { MinutesLate: null, Comment: null, ...mark, ...Object.fromEntries(posted) }
  const own = ownMembers.filter((name) => name in mark)
  const equivalences = own.map((path) => ({ rule: 'servers-own-value', path }))
  return { followed, comparison: { verdict: 'equivalent', differences: [], equivalences }, shown }
}

type AskOptions = RecordingSourceOptions & { readonly v3: Pick<AdapterSide, 'ask'> }

/**
 * Compares a recorded answer with the current answer of V3. A mark with a later `RecordedOn` on V3 was changed after the recording, so it
 * is `unknown`.
 */
async function compareRead(
  exchange: RecordedExchange,
  kind: 'readFilter' | 'readKey' | 'registrations',
  { v3, rules, nowMs }: AskOptions,
  signal: AbortSignal,
): Promise<RunStep> {
  const { target, reply, receivedMs, durationMs } = exchange
  const read = toAsked({ ...exchange, kind })
  const isJson = /json/i.test(fieldOf(reply, 'content-type') ?? '')
  const isAnswer = reply.status < 300 ? isJson : isRefusal(reply.status)
  const text = reply.body.toString('utf8')
  const records = countRows(text)
  if (typeof read === 'string' || !isAnswer) return toSkipped(records)
  const answer = await v3.ask(read, signal)
  if (signal.aborted) return { records: [] }
  if (answer.kind !== 'answered') {
    const groups = { kind, day: new Date(receivedMs).toISOString().slice(0, 10) }
    return { records: Array.from({ length: Math.max(1, records) }, () => [verdictOnly('unknown'), groups]) }
  }
  const repliedOn = { RecordedOn: new Date(receivedMs + durationMs).toISOString() }
  const own = { kind: 'answered', status: reply.status, text } as const
  const result = compareAnswers({ kind, target }, own, answer, {
    rules,
    isChanged: (v2, seen) => isLater(seen, v2 ?? repliedOn, nowMs()),
  })
  return result.kind === 'skipped' ? toSkipped(records) : toStep(result.records, exchange)
}

const isRefusal = (status: number): boolean =>
  status >= 400 && status < 500 && ![401, 403, 429].includes(status)

/** Returns the number of records in an answer, or 0 if the answer is not a list. */
function countRows(text: string): number {
  try {
    return readSidePage(parseJson(text)).rows.length
  } catch {
    return 0
  }
}

/** The maximum `RecordedOn` difference, in milliseconds, that the clocks and the time precision of V2 and V3 explain. */
const SLACK_MS = 1_000

/**
 * Returns true if the mark of V3 (`seen`) has a later `RecordedOn` than `own`, so that the mark was written again after the recording. A
 * time in the future counts as a difference and not as another write.
 */
function isLater(seen: unknown, own: unknown, nowMs: number): boolean {
  if (!isMembers(seen) || !isMembers(own)) return false
  const [seenMs, ownMs] = [recordedMs(seen), recordedMs(own)]
  return seenMs > ownMs + SLACK_MS && seenMs <= nowMs + SLACK_MS
}

const MAX_MARKS = 50_000

function createWrittenMarks() {
  const marks = new Map<string, FollowedMark>()
  let omitted = 0
  return {
    /** Registers a write of these keys, in order. `accepted` has the marks that V2 is known to have accepted. */
    recordWrite: (keys: readonly (string | undefined)[], accepted: readonly FollowedMark[]): void => {
      // The write may have replaced the earlier marks of its keys even if its outcome is unknown, so these marks are no longer compared.
      for (const key of keys) if (key !== undefined) marks.delete(key)
      for (const followed of accepted) {
        const key = markKey({ Learner: followed.learner, AttendableEvent: followed.event }) ?? ''
        if (marks.size < MAX_MARKS || marks.has(key)) marks.set(key, followed)
        else omitted += 1
      }
    },
    all: (): readonly FollowedMark[] => [...marks.values()],
    omitted: (): number => omitted,
  }
}

/**
 * Compares marks on V3 with the replies of V2. A differing mark with a later `RecordedOn` on V3 was changed after the recording, so it is
 * `unknown`.
 */
async function compareMarks(
  marks: ReturnType<typeof createWrittenMarks>,
  { v3, rules, nowMs }: AskOptions,
  signal: AbortSignal,
): Promise<RunStep> {
  const all = marks.all()
  const { compared } = await followMarks(all, {
    ask: (filter) =>
      v3.ask({ kind: 'filter', path: MARKS_PATH, query: `$filter=${encodeURIComponent(filter)}` }, signal),
    compare: ({ mark }, seen) => {
      const comparison = compareAccepted(mark, seen, rules)
      const isChanged = comparison.verdict === 'differs' && isLater(seen, mark, nowMs())
      return isChanged ? verdictOnly('unknown') : comparison
    },
    ...{ clock: backgroundClock, settleMs: 0, sinceMs: 0, stopped: signal },
  })
  return {
    skipped: marks.omitted() + all.length - compared.length,
    records: compared.map(({ followed, comparison }) => {
      const { day, codeClass } = factsOf(followed.mark, { isCorrection: false })
      return [comparison, { kind: 'marks', day, codeClass }]
    }),
  }
}
