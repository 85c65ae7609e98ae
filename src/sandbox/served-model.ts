import { serviceModel } from '../model/service-model.ts'
import type { EntityType, ServiceModel } from '../odata/index.ts'
import { lookupSets } from './seed/documents/value-lists.ts'

/** Links that service.md 1.1 expands on Grants with Welfare's list, although its type in service.md 2.8 has none of them. */
const welfareLinks: readonly string[] = ['ChildProtectionPlans', 'IncareDetails', 'PersonalEducationPlans']

const attendanceSets: readonly string[] = [
  'AttendanceRecords',
  'StatutoryAttendanceSessions',
  'StatutoryAttendanceRecordHistorys',
  'AttendanceLookups',
]

function withWelfareLinks(type: EntityType, all: readonly EntityType[]): EntityType {
  if (type.name !== 'LearnerGrant') return type
  const welfare = all.find(({ name }) => name === 'LearnerWelfare')?.navigation ?? []
  const links = welfare.filter(({ name }) => welfareLinks.includes(name))
  return { ...type, navigation: [...type.navigation, ...links] }
}

/** The model as the sandbox serves it: that of the service, so that each documented call works. */
export const servedModel: ServiceModel = {
  ...serviceModel,
  schemas: serviceModel.schemas.map((schema) => ({
    ...schema,
    entityTypes: schema.entityTypes.map((type) => withWelfareLinks(type, schema.entityTypes)),
  })),
}

/** The sets that one root serves, in a model of its own for `$metadata` and the service document. */
function modelWith(isServed: (set: string) => boolean): ServiceModel {
  const { container } = servedModel
  const entitySets = container.entitySets.filter(({ name }) => isServed(name))
  return { ...servedModel, container: { ...container, entitySets } }
}

const isAttendance = (set: string): boolean => attendanceSets.includes(set)
const isLookup = (set: string): boolean => set === 'AttendanceLookups' || lookupSets[set] !== undefined

/** The model of each kind of root: the sets that its service document lists can be read below it. */
export const rootModels = {
  Learner: modelWith((set) => !isAttendance(set)),
  Attendance: modelWith(isAttendance),
  LearnerLookup: modelWith((set) => isLookup(set) && !isAttendance(set)),
  AttendanceLookup: modelWith((set) => isLookup(set) && isAttendance(set)),
  // V2 has the registration only (service.md 9).
  LearnerV2: modelWith((set) => set === 'LearnerRegistrations'),
}
