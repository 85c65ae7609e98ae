import { type Field, listOf, objectOf, oneOf, readers, type Reader } from './read-json.ts'
import { AdapterError } from '../errors.ts'
import type { CountedGroup, RunDocument } from './run-document.ts'
import { differenceKinds, type Verdict, type VerdictCounts, verdicts } from './verdict.ts'

/** Largest file that is read as a document, in bytes: about 100,000 classes of differences. */
export const MAX_DOCUMENT_BYTES = 64 * 1024 * 1024
const MAX_CLASSES = 100_000
const MAX_GROUPS = 20_000

const { text, count, flag, day, instant } = readers
const verdictCounts: Reader<VerdictCounts> = objectOf(
  Object.fromEntries(verdicts.map((verdict) => [verdict, count])) as Record<Verdict, Reader<number>>,
)
const groups: Reader<readonly CountedGroup[]> = listOf(
  objectOf({ name: text, verdicts: verdictCounts }),
  MAX_GROUPS,
)
const kind = oneOf(differenceKinds)

/** One reader for each member of the form: a member that is added to it is missed here by the compiler. */
const members: { readonly [Name in keyof RunDocument]: Reader<RunDocument[Name]> } = {
  schema: oneOf([1]),
  run: text,
  kind: oneOf(['reads', 'recording', 'live']),
  partner: (value, at) => (value === null ? null : text(value, at)),
  startedAt: instant,
  endedAt: instant,
  from: day,
  to: day,
  complete: flag,
  offered: count,
  compared: count,
  dropped: count,
  skipped: count,
  verdicts: verdictCounts,
  differences: listOf(objectOf({ path: text, kind, v2Class: text, v3Class: text, count }), MAX_CLASSES),
  equivalences: listOf(objectOf({ rule: text, path: text, count }), MAX_CLASSES),
  noise: objectOf({
    measured: flag,
    records: count,
    differences: listOf(objectOf({ path: text, kind, count }), MAX_CLASSES),
  }),
  ownRules: listOf(
    objectOf({
      name: text,
      reason: text,
      owner: text,
      path: text,
      expires: day,
      expired: flag,
      count,
    }),
    MAX_GROUPS,
  ),
  kinds: groups,
  codeClasses: groups,
  days: groups,
  delays: listOf(
    objectOf({ upToMs: (value, at) => (value === null ? null : count(value, at)), count }),
    1000,
  ),
  askedAgain: count,
}
const readMembers: Reader<RunDocument> = objectOf(members)

/**
 * Reads the text of a file that `compare run` wrote. Members that the form does not have are left out, so nothing but the form goes on.
 * Throws ADP_USAGE where the text is no such document, is of another version, or contradicts itself; `name` is for the message.
 */
export function readRunDocument(content: string, name: string): RunDocument {
  const value = parseJson(content, name)
  expectRun(value, name)
  let document: RunDocument
  try {
    document = readMembers(value, '')
  } catch (cause) {
    if (!(cause instanceof AdapterError)) throw cause
    throw refuse(
      name,
      `${cause.message} The file was changed or cut; use the one that compare run wrote.`,
      cause,
    )
  }
  expectBalance(document, name)
  return document
}

const refuse = (name: string, why: string, cause?: unknown): AdapterError =>
  new AdapterError('ADP_USAGE', `${name} cannot be read: ${why}`, { cause })

function parseJson(content: string, name: string): unknown {
  if (content.trim() === '') throw refuse(name, 'it is empty.')
  try {
    return JSON.parse(content)
  } catch (cause) {
    const isJson = /^\uFEFF?\s*\{/.test(content)
    // The parser's own message quotes the content.
    throw refuse(
      name,
      isJson ? 'it is not valid JSON. Was it cut off, or is the run still writing it?' : 'it is not JSON.',
      cause instanceof SyntaxError ? undefined : cause,
    )
  }
}

/** Refuses documents of another kind in words of their own. */
function expectRun(value: unknown, name: string): void {
  const found: Field =
    typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : {}
  const { schema, report } = found
  if (report !== undefined)
    throw refuse(
      name,
      'it is a report, with small counts withheld; reports are made from the file of the run.',
    )
  if (typeof schema !== 'number' || found['verdicts'] === undefined)
    throw refuse(name, 'it is not the document of a comparison run.')
  if (schema !== 1)
    throw refuse(
      name,
      `it has version ${schema} of the form, this Markbridge reads version 1. Use the newer one.`,
    )
}

/** A document whose counts do not add up was not written by a run. */
function expectBalance(
  { offered, compared, dropped, skipped, verdicts: counts }: RunDocument,
  name: string,
): void {
  const judged = verdicts.reduce((sum, verdict) => sum + counts[verdict], 0)
  if (offered !== compared + dropped + skipped)
    throw refuse(name, '"offered" is not the sum of "compared", "dropped" and "skipped".')
  if (judged !== compared) throw refuse(name, 'the six verdicts do not add up to "compared".')
}
