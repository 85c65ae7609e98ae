import type { School } from '../school.ts'
import type { Face } from '../store/mark.ts'

/** An accepted write with the ids of the service. */
export interface EffectEntry {
  readonly seq: number
  readonly face: Face
  readonly learner: string
  readonly event: string
  readonly code: string
  readonly present: boolean
  readonly absent: boolean
  readonly minutesLate: number | null
  readonly comment: string | null
  readonly externalId: string
}

/** The log of accepted writes after `since`, in order. */
export function listEffects(school: School, since = 0): EffectEntry[] {
  return school.marks.effects(since).map((effect) => ({
    seq: effect.seq,
    face: effect.face,
    learner: school.ids.guid('learner', effect.learner),
    event: school.ids.guid('session', effect.session),
    code: school.ids.guid('code', effect.code),
    present: effect.present,
    absent: effect.absent,
    minutesLate: effect.minutesLate,
    comment: effect.comment,
    externalId: effect.externalId,
  }))
}
