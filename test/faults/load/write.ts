import { guid } from '../../support/batch-request.ts'
import type { Random } from '../../../src/sandbox/random.ts'

/** One mark that a client wants recorded. Its comment contains its name, so that each effect can be matched with its write. */
export interface Write {
  /** The unique name, such as `w-000123`. */
  readonly name: string
  /** The comment: the name alone, or surrounded by text that a service may alter. */
  readonly comment: string
  readonly learner: string
  readonly event: string
  readonly code: string
  readonly present: boolean
  readonly absent: boolean
  readonly minutesLate: number | null
  /** False if the service does not know the code and must reject the write. */
  readonly valid: boolean
}

/** The reply to `GET /_sandbox/samples`. */
export interface Samples {
  readonly learners: readonly string[]
  readonly events: readonly string[]
  readonly codes: readonly { readonly id: string }[]
}

/** The number of combinations of learner and session that every client writes repeatedly, so that the order of their marks matters. */
const HOT_KEYS = 12
const HOT_SHARE = 0.15
const INVALID_SHARE = 0.02
const ZERO_MINUTES_SHARE = 0.1
const LONG_COMMENT = 600

/** Spellings of a comment that a service may trim, cut or normalise. */
const spellings: readonly ((name: string) => string)[] = [
  (name) => `  ${name} `,
  (name) => `${name} Jose\u0301 Zoe\u0308`,
  (name) => `${name} first\r\nsecond\nthird`,
  (name) => `${name} `.padEnd(LONG_COMMENT, 'late bus '),
  (name) => `${name}\t`,
]
const SPELLING_SHARE = 0.4

/** The name of a write in a comment, or in any text that quotes the comment. */
export const namePattern = /w-\d{6,}/

/**
 * Returns the name of the write that a comment belongs to, or the whole comment if it contains no name, or `undefined` if it is not text.
 */
export function nameIn(comment: unknown): string | undefined {
  return typeof comment === 'string' ? (namePattern.exec(comment)?.[0] ?? comment) : undefined
}

/**
 * Returns a function that draws the next write. Most writes have a random learner and session. Some writes use one of `HOT_KEYS` fixed
 * combinations.
 */
export function createWrites(random: Random, samples: Samples, uniqueKeys = false): () => Write {
  const [firstLearner = '', ...learners] = samples.learners
  const [firstEvent = '', ...events] = samples.events
  const [firstCode = '', ...codes] = samples.codes.map(({ id }) => id)
  const drawKey = (): readonly [string, string] => [
    random.pick([firstLearner, ...learners]),
    random.pick([firstEvent, ...events]),
  ]
  const hot = Array.from({ length: HOT_KEYS }, drawKey)
  const used = new Set<string>()
  const drawUnused = (): readonly [string, string] => {
    for (;;) {
      const key = drawKey()
      const name = key.join(' ')
      if (used.has(name) && used.size < samples.learners.length * samples.events.length) continue
      used.add(name)
      return key
    }
  }
  const drawAny = (): readonly [string, string] =>
    random.chance(HOT_SHARE) ? (hot[random.below(HOT_KEYS)] ?? drawKey()) : drawKey()
  let count = 0
  return () => {
    const [learner, event] = uniqueKeys ? drawUnused() : drawAny()
    const valid = !random.chance(INVALID_SHARE)
    const present = random.chance(0.9)
    count += 1
    const name = `w-${String(count).padStart(6, '0')}`
    const spell = random.chance(SPELLING_SHARE) ? spellings[random.below(spellings.length)] : undefined
    return {
      name,
      comment: spell?.(name) ?? name,
      learner,
      event,
      code: valid ? random.pick([firstCode, ...codes]) : guid(count),
      present,
      absent: !present,
      minutesLate: drawMinutes(random, present),
      valid,
    }
  }
}

function drawMinutes(random: Random, present: boolean): number | null {
  if (random.chance(ZERO_MINUTES_SHARE)) return 0
  return present && random.chance(0.1) ? random.below(60) : null
}

export function flatRecordOf(write: Write): object {
  return {
    '@odata.type': '#AttendanceService.Models.OData.AttendanceRecord',
    Present: write.present,
    Absent: write.absent,
    Comment: write.comment,
    Learner: write.learner,
    AttendableEvent: write.event,
    SchoolAttendanceCode: write.code,
    MinutesLate: write.minutesLate,
  }
}
