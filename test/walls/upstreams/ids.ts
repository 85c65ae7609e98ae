const hex = (n: number, digits: number): string => n.toString(16).padStart(digits, '0')

/**
 * Returns the learner of a record of an exchange. The id begins with the number of the exchange, so that the service knows to which
 * exchange a record belongs.
 */
export const learnerOf = (exchange: number, record: number): string =>
  `${hex(exchange, 8)}-0000-4000-8000-${hex(record, 12)}`

/**
 * Returns the event of all records of an exchange. The second block of an event's id differs from the second block of a learner's id, so
 * that no event is taken for a learner.
 */
export const eventOf = (exchange: number): string => `${hex(exchange, 8)}-eeee-4000-8000-${hex(0, 12)}`

export const otherId = (n: number): string => `ffffffff-ffff-4fff-8fff-${hex(n % 2 ** 40, 12)}`

const LEARNER = /([0-9a-f]{8})-0000-4000-8000-[0-9a-f]{12}/

/** Returns the exchange that a text names first, by a learner or by `n=`, or -1 if the text names none. */
export function exchangeIn(text: string): number {
  const [, learner] = LEARNER.exec(text) ?? []
  const [, number] = /[?&]n=(\d+)/.exec(text) ?? []
  if (learner !== undefined) return Number.parseInt(learner, 16)
  return number === undefined ? -1 : Number(number)
}

/** Returns the learners that a text names, each once. */
export const learnersIn = (text: string): string[] => [
  ...new Set([...text.matchAll(new RegExp(LEARNER.source, 'g'))].map(([learner]) => learner)),
]
