import { z } from 'zod'
import { readRules } from '../control/read-rules.ts'
import { formChanges } from './form-change.ts'
import { replyKinds } from './reply-change.ts'
import { valueChanges } from './value-change.ts'

/** Kinds that change which rows there are, or where they stand. */
const rowKinds = ['missing', 'extra', 'doubled', 'order', 'history', 'start'] as const

type ValueKind = keyof typeof valueChanges
type FormKind = keyof typeof formChanges

/** How a row of one face differs from the stored mark; docs/sandbox.md describes each. */
export type DrawnKind = ValueKind | FormKind | (typeof rowKinds)[number]
export type DifferenceKind = DrawnKind | 'late'

const namesOf = <Name extends string>(table: Readonly<Record<Name, unknown>>): Name[] =>
  Object.keys(table) as Name[]

/** Every kind that can be drawn. */
export const drawnKinds: readonly DrawnKind[] = [
  ...namesOf(valueChanges),
  ...namesOf(formChanges),
  ...rowKinds,
]

const delayMs = z.int().min(0).max(3_600_000)
const id = z.guid().toLowerCase()

const schema = z.strictObject({
  /** The face that shows the differences; the other one shows what is stored. */
  face: z.enum(['V2', 'V3']),
  /** Chosen rows; several kinds may meet one row. */
  rows: z
    .array(
      z.strictObject({
        learner: id,
        event: id,
        kind: z.enum([...drawnKinds, 'late']),
        /** For `late`: how long a write of the other face stays unseen. */
        delayMs: delayMs.default(5000),
      }),
    )
    .max(100_000)
    .default([]),
  /** Decides which rows are drawn, and which late writes are. */
  seed: z.int().min(0).max(0xffff_ffff).default(1),
  /** Rows to draw, each with one kind; the kinds take turns. */
  count: z.int().min(0).max(10_000).default(0),
  kinds: z
    .array(z.enum(drawnKinds))
    .min(1)
    .default([...drawnKinds]),
  /** First and last day to draw from; absent: the whole calendar. */
  from: z.iso.date().optional(),
  to: z.iso.date().optional(),
  /** Learners to draw from; absent: all. */
  learners: z.array(id).min(1).optional(),
  /** Writes of the other face are seen `delayMs` to `delayMs + spreadMs` later; `share` of them, the rest at once. */
  late: z
    .strictObject({ delayMs, spreadMs: delayMs.default(0), share: z.number().min(0).max(1).default(1) })
    .optional(),
  /** Changes of V2's replies to batches, by part; `face` says `V2` then. */
  reply: z
    .array(z.strictObject({ kind: z.enum(replyKinds), part: z.int().min(1).optional() }))
    .max(10_000)
    .default([]),
})

/** Which differences a face is to show. */
export type DifferencePlan = z.output<typeof schema>

/** Reads the body of `PUT /_sandbox/differences`. Errors: `ADP_USAGE` with every fault of the form. */
export function readDifferencePlan(body: unknown): DifferencePlan {
  return readRules(schema, body, 'The differences')
}
