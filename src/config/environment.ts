import * as z from 'zod'

/** The environment variables of the program, besides the secrets that a file names. */
export interface Environment {
  /** `MARKBRIDGE_LOG_LEVEL`: debug, info, warn, error or silent. */
  readonly logLevel: string | undefined
  /** `MARKBRIDGE_SUBSCRIPTION_KEY` and `MARKBRIDGE_TOKEN`: what `send` and `compare run` send. */
  readonly subscriptionKey: string | undefined
  readonly token: string | undefined
  /** `MARKBRIDGE_V3_SUBSCRIPTION_KEY` and `MARKBRIDGE_V3_TOKEN`: what `compare run` sends to V3 instead. */
  readonly v3SubscriptionKey: string | undefined
  readonly v3Token: string | undefined
  /** `MARKBRIDGE_OPERATOR_TOKEN`: who acts on stages. A secret. */
  readonly operatorToken: string | undefined
  /** `MARKBRIDGE_TEST_TUNING`: what tests shorten (`Tuning`). Internal. */
  readonly testTuning: string | undefined
  /** `TERM` is dumb: the terminal cannot erase a line. */
  readonly isDumbTerminal: boolean
}

/** The value of a variable that a file names as the source of a secret. */
export function readVariable(name: string): string | undefined {
  return process.env[name]
}

/** Reads the variables; an empty one counts as unset. */
export function readEnvironment(): Environment {
  const read = (name: string): string | undefined =>
    process.env[name] === '' ? undefined : process.env[name]
  return {
    logLevel: read('MARKBRIDGE_LOG_LEVEL'),
    subscriptionKey: read('MARKBRIDGE_SUBSCRIPTION_KEY'),
    token: read('MARKBRIDGE_TOKEN'),
    v3SubscriptionKey: read('MARKBRIDGE_V3_SUBSCRIPTION_KEY'),
    v3Token: read('MARKBRIDGE_V3_TOKEN'),
    operatorToken: read('MARKBRIDGE_OPERATOR_TOKEN'),
    testTuning: read('MARKBRIDGE_TEST_TUNING'),
    isDumbTerminal: read('TERM') === 'dumb',
  }
}

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
