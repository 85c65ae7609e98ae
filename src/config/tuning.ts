import * as z from 'zod'

const ms = z.int().positive()

/**
 * What no file sets. Tests have to wait for some of it, so `MARKBRIDGE_TEST_TUNING` may have other values as JSON. That is internal: it
 * may change with any version.
 */
const tuningSchema = z.strictObject({
  /** An instance may post so long without renewing its lease; others take its batches over after 1.2 times that. */
  leaseMs: ms.default(10_000),
  /** The longest wait for the instances to drain before a step forward. */
  stageDrainMs: ms.default(10_000),
  /** After a guard went back or holds, no step forward is taken for so long without `--despite-hold`. */
  coolDownMs: ms.default(3_600_000),
  /** The longest wait for a free connection to an upstream. */
  acquireMs: ms.default(10_000),
  /** Bytes of one record; the part of a larger one gets 400. */
  maxPartBytes: z.int().positive().default(1_048_576),
  /** Clients that are slower than this are disconnected. */
  slowClients: z
    .strictObject({
      /** Sending or reading. */
      minBytesPerSecond: z.number().positive().default(512),
      /** For the head of a request. */
      headersMs: ms.default(20_000),
      /** Before the rate of an upload is checked, and that of reading a reply. */
      uploadMs: ms.default(10_000),
      replyMs: ms.default(30_000),
    })
    .prefault({}),
  /** What has to be seen on the side that serves, or compared, before the next step is advised: a school week with all of its lessons. */
  evidence: z
    .strictObject({
      records: z.number().default(1_000),
      batches: z.number().default(100),
      /** Different attendance codes. */
      codes: z.number().default(4),
      /** Share of the sample that has to have been compared. */
      comparedShare: z.number().default(0.9),
    })
    .prefault({}),
})

/** Times and bounds that are the same for every user. */
export type Tuning = z.infer<typeof tuningSchema>

/** The tuning with some values of a test. */
export function tuningOf(values: z.input<typeof tuningSchema> = {}): Tuning {
  return tuningSchema.parse(values)
}

/** The tuning that a test gave to this process. */
export function readTuning(json = '{}'): Tuning {
  return tuningSchema.parse(JSON.parse(json))
}
