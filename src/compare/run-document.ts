import * as z from 'zod'

import { AdapterError } from '../errors.ts'
import { differenceKinds, verdicts } from './verdict.ts'

/** Largest file that is read as a document, in bytes: about 100,000 classes of differences. */
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
 * The result of a comparison run; it holds no value of a record. Counts are exact. `offered` = `compared` + `dropped` + `skipped`, and the
 * verdicts add up to `compared`; all of these count records. docs/compare-report.schema.json describes the members.
 */
const form = z
  .object({
    /** Version of this form. */
    schema: z.literal(1),
    run: text,
    /** `reads`: both services were asked. `recording`: exchanges from files. `live`: evidence of a running adapter. */
    kind: z.enum(['reads', 'recording', 'live']),
    partner: text.nullable(),
    /** The addresses that were asked; null: none was, or the configuration of a running adapter has them. */
    services: z.object({ v2: text.nullable(), v3: text.nullable() }).readonly().nullable().default(null),
    startedAt: instant,
    endedAt: instant,
    /** First and last of `days`. */
    from: day,
    to: day,
    /** False: the run was stopped before its end. */
    complete: z.boolean(),
    offered: count,
    compared: count,
    dropped: count,
    skipped: count,
    verdicts: verdictCounts,
    /** Largest count first. */
    differences: listOf(z.object({ path: text, kind, v2Class: text, v3Class: text, count }).readonly()),
    equivalences: listOf(z.object({ rule: text, path: text, count }).readonly()),
    /** What V2 contradicts itself in; `measured` is false where it was read once. Such fields are not among `differences`. */
    noise: z
      .object({
        measured: z.boolean(),
        records: count,
        differences: listOf(z.object({ path: text, kind, count }).readonly()),
      })
      .readonly(),
    /**
     * The partner's own rules, and what they did: `count` is that of fields which a rule made equivalent, or would have made so if it had
     * not expired when the run began. `expires` is the last day on which it counts.
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
    /** Kinds of requests or of record: `marks`, `registrations`, `batch`, … */
    kinds: groups,
    /** `code:present`, `code:absent`, `code:neither`, by V2's booleans, or V3's where V2 has no record. */
    codeClasses: groups,
    /** By day of the records, oldest first; of the kind `live` by the day on which they were compared, so that a mended cause shows. */
    days: groups,
    /** By the hour (UTC) in which they were compared, `00` to `23`; of the kind `live` alone. */
    hours: groups.default([]),
    /** How long a mark took to be visible on the other side; empty where that was not measured. `upToMs` null: longer than all. */
    delays: listOf(z.object({ upToMs: count.nullable(), count }).readonly(), 1000),
    /** Records that were asked again because they changed during the run. */
    askedAgain: count,
  })
  .readonly()

export type RunDocument = z.infer<typeof form>
/** Verdicts of a group of records. */
export type CountedGroup = RunDocument['days'][number]

/**
 * Reads the text of a file that `compare run` wrote. Members that the form does not have are left out, so nothing but the form goes on.
 * Throws ADP_USAGE where the text is no such document, is of another version, or contradicts itself; `name` is for the message, which
 * quotes nothing of the text.
 */
export function readRunDocument(content: string, name: string): RunDocument {
  const refuse = (why: string): AdapterError =>
    new AdapterError('ADP_USAGE', `${name} cannot be read: ${why}`)
  const value = parseJson(content)
  if (value === undefined)
    throw refuse('it is not valid JSON. Was it cut off, or is the run still writing it?')
  const head = z
    .object({ schema: z.number(), verdicts: z.unknown().optional(), report: z.unknown().optional() })
    .safeParse(value)
  if (!head.success || head.data.verdicts === undefined)
    throw refuse('it is not the document of a comparison run.')
  if (head.data.report !== undefined)
    throw refuse('it is a report, whose counts may be rounded; reports are made from the file of the run.')
  if (head.data.schema !== 1)
    throw refuse(
      `it has version ${head.data.schema} of the form, this Markbridge reads version 1. Use the newer one.`,
    )
  const read = form.safeParse(value)
  if (!read.success) {
    const [issue] = read.error.issues
    throw refuse(
      `${issue?.path.join('.')}: ${issue?.message}. The file was changed or cut; use the one that compare run wrote.`,
    )
  }
  const { offered, compared, dropped, skipped, verdicts: counts } = read.data
  if (offered !== compared + dropped + skipped)
    throw refuse('"offered" is not the sum of "compared", "dropped" and "skipped".')
  if (verdicts.reduce((sum, verdict) => sum + counts[verdict], 0) !== compared)
    throw refuse('the six verdicts do not add up to "compared".')
  return read.data
}

/** Undefined for a text that is no JSON; the parser's own message quotes it. */
function parseJson(content: string): unknown {
  try {
    return JSON.parse(content)
  } catch {
    return undefined
  }
}

/** `ready`: every record is the same or equivalent. `differs`: at least one is not. `inconclusive`: the run cannot say. */
export type RunOutcome = 'ready' | 'differs' | 'inconclusive'

/** Why a run is inconclusive, or says less than it seems to. */
export type RunDoubt = 'incomplete' | 'nothingCompared' | 'tooFewCompared' | 'unknown' | 'expiredRules'

/** Exit status of `compare run`; 2 is wrong usage. */
export const outcomeStatus: Readonly<Record<RunOutcome, number>> = { ready: 0, differs: 1, inconclusive: 3 }

/** Share of the offered records, in percent, that has to be compared: below it a run is inconclusive. */
export const LEAST_COMPARED_PERCENT = 90

/** The advice on the next step of the partner of a live document (`rollout/advise`), as far as it is known. */
export type StepAdvice = { readonly verdict: string; readonly missing: readonly string[] } | undefined

/**
 * The outcome of a run. A difference counts whatever else is in doubt: more records would not take it back. What live comparison has found is
 * `ready` where the advice on the next step is, and only there.
 */
export function outcomeOf(document: RunDocument, advice?: StepAdvice): RunOutcome {
  if (document.kind === 'live' && advice?.verdict === 'ready') return 'ready'
  if (unlikeOf(document.verdicts) > 0) return 'differs'
  if (document.kind === 'live') return 'inconclusive'
  return doubtsOf(document).some((doubt) => doubt !== 'expiredRules') ? 'inconclusive' : 'ready'
}

/** Records that are not the same on both sides. */
export const unlikeOf = ({ differs, onlyV2, onlyV3 }: RunDocument['verdicts']): number =>
  differs + onlyV2 + onlyV3

/** What is in doubt about a run, the gravest first; empty where nothing is. */
export function doubtsOf(document: RunDocument): readonly RunDoubt[] {
  const { complete, offered, compared, verdicts: counts, ownRules } = document
  const doubts: RunDoubt[] = []
  if (compared === 0) doubts.push('nothingCompared')
  if (!complete) doubts.push('incomplete')
  if (compared > 0 && compared * 100 < offered * LEAST_COMPARED_PERCENT) doubts.push('tooFewCompared')
  if (counts.unknown > 0) doubts.push('unknown')
  // Fields of an expired rule count as differences: it changes the outcome by them alone.
  if (ownRules.some(({ expired, count: fields }) => expired && fields > 0)) doubts.push('expiredRules')
  return doubts
}
