import { serviceModel } from '../model/service-model.ts'
import type { EntityType, ServiceModel } from '../odata/index.ts'

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

/** The sets that one area serves, in a model of its own for `$metadata` and the service document. */
export function modelOfArea(area: 'Learner' | 'Attendance'): ServiceModel {
  const { container } = servedModel
  const entitySets = container.entitySets.filter(
    ({ name }) => attendanceSets.includes(name) === (area === 'Attendance'),
  )
  return { ...servedModel, container: { ...container, entitySets } }
}
