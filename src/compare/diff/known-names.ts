import { attendanceV2Model } from '../../model/attendance-v2.ts'
import { serviceModel } from '../../model/service-model.ts'

/** The part of a path for a member that is not of the service's model: its name may hold personal data. */
export const OTHER_NAME = '(other)'

/** Path of what concerns a record as a whole: how often it occurs, its position. No member has this name. */
export const ROW_PATH = '(row)'

const names: ReadonlySet<string> = new Set([
  'ExternalID',
  ...[serviceModel, attendanceV2Model].flatMap(({ schemas }) =>
    schemas.flatMap(({ complexTypes, entityTypes }) =>
      [...complexTypes, ...entityTypes].flatMap(({ properties, navigation }) =>
        [...properties, ...navigation].map(({ name }) => name),
      ),
    ),
  ),
])

/** The name of a member as paths show it: that of the service's model (service.md 2), or `(other)`. */
export function shownName(name: string): string {
  return names.has(name) ? name : OTHER_NAME
}

/** True for OData's control information (`@odata.context`, `Enrolments@odata.count`), which is no content of a record. */
export function isControlName(name: string): boolean {
  return name.includes('@')
}
