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
