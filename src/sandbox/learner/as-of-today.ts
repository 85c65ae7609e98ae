import type { Identities } from '../identity.ts'
import type { Entity } from '../query/compiled-query.ts'
import { isEntity } from '../query/compiled-query.ts'
import { monthsBetween, rollStateOn, yearGroupOn } from '../roll.ts'
import type { Json } from '../seed/documents/field-rules.ts'
import type { GroupType } from '../seed/documents/groups.ts'
import { groupNumber } from '../seed/documents/groups.ts'
import { classNameOn } from '../seed/pupil.ts'
import type { Pupil } from '../seed/pupil.ts'

type Members = Record<string, Json>

/** Fills in the values that depend on the day: age, roll state and groups of a learner, and the end of an enrolment. */
export function asOfToday(set: string, stored: Members, pupil: Pupil, day: number, ids: Identities): Members {
  if (set === 'LearnerIdentifiers') return { ...stored, ...identifierOn(day, pupil, ids) }
  const enrolments = stored['Enrolments']
  if (set !== 'LearnerRegistrations' || !Array.isArray(enrolments) || day > pupil.leavingDay) return stored
  return { ...stored, Enrolments: enrolments.map((one) => (isEntity(one) ? stillOpen(one) : one)) }
}

function identifierOn(day: number, pupil: Pupil, ids: Identities): Members {
  const state = rollStateOn(pupil, day)
  const group = (type: GroupType, name: string | undefined, description = name): Json =>
    state !== 'Current' || name === undefined || description === undefined
      ? null
      : {
          Description: description,
          ExternalID: ids.guid('group', groupNumber(name)),
          Type: `PastoralGroup.Definition.${type}`,
        }
  const year = String(yearGroupOn(pupil, day))
  return {
    AgeMonths: monthsBetween(pupil.birthDay, day),
    CurrentYearGroup: group('YearGroup', year, `Year ${year}`),
    CurrentPrimaryClass: group('PrimaryClass', classNameOn(pupil, day)),
    CurrentHouse: group('House', pupil.house),
    OnRollState: state,
  }
}

const ofLeavers = [
  'DateOfLeaviing',
  'Destination',
  'DestinationStartDate',
  'ReasonForLeaving',
  'GroundsForRemoval',
  'DestinationEstablishment',
] as const

/** The enrolment of a learner who has not left yet: its end is not known. */
function stillOpen(enrolment: Entity): Members {
  const statuses = enrolment['EnrolmentStatuses']
  const open = Array.isArray(statuses)
    ? statuses.map((status) => (isEntity(status) ? { ...status, EndDate: null } : status))
    : []
  return {
    ...enrolment,
    ...Object.fromEntries(ofLeavers.map((name) => [name, null])),
    EnrolmentStatuses: open,
  }
}
