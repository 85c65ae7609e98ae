import { guid } from '../../support/batch-request.ts'
import type { Random } from '../../../src/sandbox/random.ts'

/** One mark that a client wants recorded. Its name is its comment, so that it is found again in the effects. */
export interface Write {
  /** `w-000123`, unique. */
  readonly name: string
  readonly learner: string
  readonly event: string
  readonly code: string
  readonly present: boolean
  readonly absent: boolean
  readonly minutesLate: number | null
  /** False: the service knows no such code and must refuse it. */
  readonly valid: boolean
}

/** What `GET /_sandbox/samples` answers with. */
export interface Samples {
  readonly learners: readonly string[]
  readonly events: readonly string[]
  readonly codes: readonly { readonly id: string }[]
}

/** Marks that every connection writes again and again: there the order counts. */
const HOT_KEYS = 12
const HOT_SHARE = 0.15
const INVALID_SHARE = 0.02

/** Draws writes one after another: most of any learner and session, a share of a few that are written over and over. */
export function createWrites(random: Random, samples: Samples): () => Write {
  const [firstLearner = '', ...learners] = samples.learners
  const [firstEvent = '', ...events] = samples.events
  const [firstCode = '', ...codes] = samples.codes.map(({ id }) => id)
  const drawKey = (): readonly [string, string] => [
    random.pick([firstLearner, ...learners]),
    random.pick([firstEvent, ...events]),
  ]
  const hot = Array.from({ length: HOT_KEYS }, drawKey)
  let count = 0
  return () => {
    const [learner, event] = random.chance(HOT_SHARE) ? (hot[random.below(HOT_KEYS)] ?? drawKey()) : drawKey()
    const valid = !random.chance(INVALID_SHARE)
    const present = random.chance(0.9)
    count += 1
    return {
      name: `w-${String(count).padStart(6, '0')}`,
      learner,
      event,
      code: valid ? random.pick([firstCode, ...codes]) : guid(count),
      present,
      absent: !present,
      minutesLate: present && random.chance(0.1) ? random.below(60) : null,
      valid,
    }
  }
}

/** The flat record that a V2 client posts for it. */
export function flatRecordOf(write: Write): object {
  return {
    '@odata.type': '#AttendanceService.Models.OData.AttendanceRecord',
    Present: write.present,
    Absent: write.absent,
    Comment: write.name,
    Learner: write.learner,
    AttendableEvent: write.event,
    SchoolAttendanceCode: write.code,
    MinutesLate: write.minutesLate,
  }
}
