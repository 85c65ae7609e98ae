import * as z from 'zod'

import { AdapterError } from '../errors.ts'
import { parseJson } from '../upstream/index.ts'
import { differenceKinds, verdicts } from './verdict.ts'

/** The maximum size of a run document. A document of this size has room for about 100,000 classes of differences. */
export const MAX_DOCUMENT_BYTES = 64 * 1024 * 1024
const MAX_CLASSES = 100_000
const MAX_GROUPS = 20_000

const text = z.string().max(2000)
const count = z.int().nonnegative()
const day = z.iso.date()
const instant = z.iso.datetime({ offset: true })
const kind = z.enum(differenceKinds)
const verdictCounts = z.record(z.enum(verdicts), count).readonly()
const listOf = <Element extends z.ZodType>(element: Element, most = MAX_CLASSES) =>
  z.array(element).max(most).readonly()
const groups = listOf(z.object({ name: text, verdicts: verdictCounts }).readonly(), MAX_GROUPS)

/**
 * The result of a comparison run, without any value of a record. Counts are exact. `offered` = `compared` + `dropped` + `skipped`, and the
 * verdicts add up to `compared`; all of these count records. docs/compare-report.schema.json describes the members.
 */
const form = z
  .object({
    schema: z.literal(1),
    run: text,
    /** The source: both services (`reads`), recorded exchanges (`recording`), or the evidence of a running adapter (`live`). */
    kind: z.enum(['reads', 'recording', 'live']),
    partner: text.nullable(),
    /** The base addresses of the services that the run read. Null for a live run, and for a recording that was compared without V3. */
    services: z.object({ v2: text.nullable(), v3: text.nullable() }).readonly().nullable().default(null),
    startedAt: instant,
    endedAt: instant,
    from: day,
    to: day,
    /** False if the run stopped early, or if a part of the range could not be read. */
    complete: z.boolean(),
    offered: count,
    compared: count,
    dropped: count,
    skipped: count,
    verdicts: verdictCounts,
    /** Classes of differences, sorted by count, largest first. */
    differences: listOf(z.object({ path: text, kind, v2Class: text, v3Class: text, count }).readonly()),
    equivalences: listOf(z.object({ rule: text, path: text, count }).readonly()),
    /** Fields in which two reads of V2 differ. `differences` does not contain these fields. `measured` is false if V2 was read only once. */
    noise: z
      .object({
        measured: z.boolean(),
        records: count,
        differences: listOf(z.object({ path: text, kind, count }).readonly()),
      })
      .readonly(),
    /**
     * The rules of the partner. `count` is the number of fields that a rule made equivalent, or would have made equivalent if it had not
     * expired.
     */
    ownRules: listOf(
      z
        .object({
          name: text,
          reason: text,
          owner: text,
          path: text,
          expires: day,
          expired: z.boolean(),
          count,
        })
        .readonly(),
      MAX_GROUPS,
    ),
    /** Counts by kind of request or record, such as `marks`, `registrations` or `batch`. */
    kinds: groups,
    /**
     * Counts by class of the attendance code. `Present` and `Absent` of the V2 record decide the class, or those of the V3 record if V2 has
     * none.
     */
    codeClasses: groups,
    /**
     * Counts by day of the session. In a live run they are counts by day of the comparison, so that the effect of a fix becomes visible.
     */
    days: groups,
    /** Counts by the hour of the comparison (UTC), `00` to `23`. Only runs of kind `live` have hours. */
    hours: groups.default([]),
    /**
     * How long marks took to become visible on the other side, as counts by upper bound in milliseconds. `upToMs` is null in the last,
     * unbounded bucket. The list is empty if the run did not measure delays.
     */
    delays: listOf(z.object({ upToMs: count.nullable(), count }).readonly(), 1000),
    /** The number of records that differed at first and were therefore read again. */
    askedAgain: count,
  })
  .readonly()

export type RunDocument = z.infer<typeof form>
export type CountedGroup = RunDocument['days'][number]

/**
 * Parses the text of a file that `compare run` wrote, and drops unknown members. `name` appears in error messages, which never quote the
 * text. Throws `ADP_USAGE` if the text is not a run document, has another version, or contradicts itself.
 */
export function readRunDocument(content: string, name: string): RunDocument {
  const refuse = (why: string): AdapterError =>
    new AdapterError('ADP_USAGE', `${name} cannot be read: ${why}`)
  const value = parseJson(content)
  if (value === undefined)
    throw refuse('it is not valid JSON. It may be truncated. Use the file that compare run wrote.')
  const head = z
    .object({ schema: z.number(), verdicts: z.unknown().optional(), report: z.unknown().optional() })
    .safeParse(value)
  if (!head.success || head.data.verdicts === undefined)
    throw refuse('it is not the document of a comparison run. Use the file that compare run wrote.')
  if (head.data.report !== undefined)
    throw refuse('it is a report, whose counts may be rounded. Use the file that compare run wrote.')
  if (head.data.schema !== 1)
    throw refuse(
      `its format has version ${head.data.schema}, and this Markbridge reads version 1. Use the version of Markbridge that wrote the file.`,
    )
  const read = form.safeParse(value)
  if (!read.success) {
    const [issue] = read.error.issues
    throw refuse(
      `${issue?.path.join('.')}: ${issue?.message}. The file was changed. Use the file that compare run wrote.`,
    )
  }
  const { offered, compared, dropped, skipped, verdicts: counts } = read.data
  if (offered !== compared + dropped + skipped)
    throw refuse(
      '"offered" is not the sum of "compared", "dropped" and "skipped". The file was changed. Use the file that compare run wrote.',
    )
  if (verdicts.reduce((sum, verdict) => sum + counts[verdict], 0) !== compared)
    throw refuse(
      'the six verdicts do not add up to "compared". The file was changed. Use the file that compare run wrote.',
    )
  return read.data
}

/**
 * `ready`: every compared record is the same or equivalent, or the advice of a live run is `ready`. `differs`: at least one record differs,
 * or only one side has it. `inconclusive`: the run does not show whether the sides agree.
 */
export type RunOutcome = 'ready' | 'differs' | 'inconclusive'

/** The reasons why a run is inconclusive or proves less than it seems to. */
export type RunDoubt = 'incomplete' | 'nothingCompared' | 'tooFewCompared' | 'unknown' | 'expiredRules'

/** The exit status of `compare run` for each outcome. Status 2 means wrong usage. */
export const outcomeStatus: Readonly<Record<RunOutcome, number>> = { ready: 0, differs: 1, inconclusive: 3 }

/** The minimum percentage of offered records that a run must compare. Below it the run is inconclusive. */
export const MIN_COMPARED_PERCENT = 90

/** The advice on the next step of the rollout (`rollout/advise`), or `undefined` if the advice is unknown. */
export type StepAdvice = { readonly verdict: string; readonly missing: readonly string[] } | undefined

/**
 * Returns the outcome of a run. A live run is `ready` if and only if the advice on the next step is `ready`. Otherwise a single difference
 * means `differs`, even if the run is incomplete, since more records would not remove the difference.
 */
export function outcomeOf(document: RunDocument, advice?: StepAdvice): RunOutcome {
  if (document.kind === 'live' && advice?.verdict === 'ready') return 'ready'
  if (unlikeOf(document.verdicts) > 0) return 'differs'
  if (document.kind === 'live') return 'inconclusive'
  return doubtsOf(document).some((doubt) => doubt !== 'expiredRules') ? 'inconclusive' : 'ready'
}

export const unlikeOf = ({ differs, onlyV2, onlyV3 }: RunDocument['verdicts']): number =>
  differs + onlyV2 + onlyV3

export function doubtsOf(document: RunDocument): readonly RunDoubt[] {
  const { complete, offered, compared, verdicts: counts, ownRules } = document
  const doubts: RunDoubt[] = []
  if (compared === 0) doubts.push('nothingCompared')
  if (!complete) doubts.push('incomplete')
  if (compared > 0 && compared * 100 < offered * MIN_COMPARED_PERCENT) doubts.push('tooFewCompared')
  if (counts.unknown > 0) doubts.push('unknown')
  // An expired rule is a doubt only if it still matches differences, because these now count as differences.
  if (ownRules.some(({ expired, count: fields }) => expired && fields > 0)) doubts.push('expiredRules')
  return doubts
}
