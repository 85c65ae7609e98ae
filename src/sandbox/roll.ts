import { dayMs, schoolYearOf } from './dates.ts'

/** The roll state of a learner; the cycle is future, current, leaver (service-facts 16). */
export type RollState = 'Current' | 'Leaver' | 'Future'

/** From when until when a learner is on roll, as day numbers; pupils who are still there have a day on which they will leave. */
export interface Enrolment {
  readonly admissionDay: number
  readonly leavingDay: number
}

/** Whether a learner is on roll on a day; both ends of the enrolment count. */
export function isOnRoll({ admissionDay, leavingDay }: Enrolment, day: number): boolean {
  return day >= admissionDay && day <= leavingDay
}

/** The roll state on a day. */
export function rollStateOn(enrolment: Enrolment, day: number): RollState {
  if (isOnRoll(enrolment, day)) return 'Current'
  return day < enrolment.admissionDay ? 'Future' : 'Leaver'
}

/** The year group on a day: 1 in the school year that began in `entryYear`. */
export function yearGroupOn({ entryYear }: { readonly entryYear: number }, day: number): number {
  return schoolYearOf(day) - entryYear + 1
}

/** Whole months from a day to a later one. */
export function monthsBetween(from: number, to: number): number {
  const [start, end] = [new Date(from * dayMs), new Date(to * dayMs)]
  const months =
    (end.getUTCFullYear() - start.getUTCFullYear()) * 12 + end.getUTCMonth() - start.getUTCMonth()
  return end.getUTCDate() < start.getUTCDate() ? months - 1 : months
}
