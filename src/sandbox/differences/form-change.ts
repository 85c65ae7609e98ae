import type { Entity } from '../query/compiled-query.ts'
import { isEntity } from '../query/compiled-query.ts'
import type { Json } from '../seed/documents/field-rules.ts'
import type { Face } from '../store/mark.ts'
import type { MarkNeed } from './value-change.ts'

/** Another written form of values: filters and orders act on the stored ones. */
export interface FormChange {
  /** Fields of the flat record that it may change. */
  readonly paths: readonly string[]
  readonly needs: MarkNeed
  readonly change: (value: Json) => Json | undefined
}

const guids = ['ExternalID', 'RecordedBy', 'Learner', 'AttendableEvent', 'SchoolAttendanceCode']
const times = ['RecordedOn', 'AttendableEventStart']
const upperCase = (value: Json): Json => (typeof value === 'string' ? value.toUpperCase() : value)

/** The kinds that write values otherwise. `undefined` leaves the member out. */
export const formChanges = {
  guidCase: { paths: guids, needs: 'mark', change: upperCase },
  timeOffset: { paths: times, needs: 'mark', change: withOffset },
  timeFraction: { paths: times, needs: 'mark', change: withFraction },
  nullMissing: {
    paths: ['ChangeProcessName', 'MinutesLate', 'Comment'],
    needs: 'nulls',
    change: (value) => value ?? undefined,
  },
  minutesText: {
    paths: ['MinutesLate'],
    needs: 'minutes',
    change: (value) => (typeof value === 'number' ? String(value) : value),
  },
} as const satisfies Record<string, FormChange>

/** Where the fields of the flat record stand in a record of V3. */
const nested: Readonly<Record<string, readonly [string, string]>> = {
  RecordedBy: ['RecordedBy', 'ExternalID'],
  Learner: ['Attendee', 'ExternalID'],
  AttendableEvent: ['Event', 'ExternalID'],
  SchoolAttendanceCode: ['AttendanceCode', 'ExternalID'],
  MinutesLate: ['Qualifier', 'MinutesLate'],
  Comment: ['Qualifier', 'Comment'],
}

/** Changes the fields of a record of a face. */
export function changeForm({ paths, change }: FormChange, face: Face, entity: Entity): Entity {
  let result = entity
  for (const path of paths) {
    const place = face === 'V3' ? nested[path] : undefined
    if (place === undefined) result = changeMember(result, path, change)
    else result = changeMember(result, place[0], (value) => changeInside(value, place[1], change))
  }
  return result
}

function changeInside(value: Json, name: string, change: FormChange['change']): Json {
  return isEntity(value) ? { ...changeMember(value, name, change) } : value
}

/** The members keep their order, in which the record is written. */
function changeMember(entity: Entity, name: string, change: FormChange['change']): Entity {
  const members = Object.entries(entity).flatMap(([member, value]): [string, Json][] => {
    if (member !== name) return [[member, value]]
    const changed = change(value)
    return changed === undefined ? [] : [[member, changed]]
  })
  return Object.fromEntries(members)
}

/** The same instant an hour ahead of UTC. */
function withOffset(value: Json): Json {
  if (typeof value !== 'string') return value
  return new Date(Date.parse(value) + 3_600_000).toISOString().replace('.000Z', 'Z').replace('Z', '+01:00')
}

/** The same instant with seven digits of a second. */
function withFraction(value: Json): Json {
  return typeof value === 'string' ? new Date(value).toISOString().replace('Z', '0000Z') : value
}
