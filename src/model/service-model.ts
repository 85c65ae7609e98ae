import type { ComplexType, ServiceModel } from '../odata/csdl.ts'
import { attendanceComplexTypes, attendanceEntityTypes, attendanceFunctions } from './attendance.ts'
import { contactsEntityTypes } from './contacts.ts'
import { culturalEntityTypes } from './cultural.ts'
import { dietaryEntityTypes } from './dietary.ts'
import { serviceSets } from './entity-sets.ts'
import { grantsWelfareEntityTypes } from './grants-welfare.ts'
import { identityEntityTypes } from './identity.ts'
import { medicalComplexTypes, medicalEntityTypes } from './medical.ts'
import { complex, guid, required, serviceNamespace, string } from './notation.ts'
import { registrationEntityTypes } from './registration.ts'
import { senComplexTypes, senEntityTypes } from './sen.ts'
import { enumTypes, sharedComplexTypes } from './shared.ts'

const complexTypes: readonly ComplexType[] = [
  ...sharedComplexTypes,
  ...medicalComplexTypes,
  ...senComplexTypes,
  ...attendanceComplexTypes,
]

const entityTypes = [
  ...identityEntityTypes,
  ...medicalEntityTypes,
  ...senEntityTypes,
  ...culturalEntityTypes,
  ...dietaryEntityTypes,
  ...contactsEntityTypes,
  ...grantsWelfareEntityTypes,
  ...registrationEntityTypes,
  ...attendanceEntityTypes,
]

/** Types that service.md only names: an id, a code and a text, as the service's lookups have (service.md 2.11). */
function namedTypes(): ComplexType[] {
  const declared = new Set([...complexTypes, ...enumTypes].map(({ name }) => `${serviceNamespace}.${name}`))
  const used = new Set(
    [...complexTypes, ...entityTypes].flatMap(({ properties }) => properties.map(({ type }) => type)),
  )
  const fields = { ExternalID: required(guid), Code: string, Description: string }
  return [...used]
    .filter((type) => !type.startsWith('Edm.') && !declared.has(type))
    .map((type) => complex(type.slice(serviceNamespace.length + 1), fields))
}

/**
 * The whole V3 service of service.md 2 as data: one declaration for `$metadata`, the checking of queries and bodies,
 * and the stand-in service. `SIMS` is the namespace that the service's own addresses use (service-facts 4 and 15).
 */
export const serviceModel: ServiceModel = {
  schemas: [
    {
      namespace: serviceNamespace,
      alias: 'SIMS',
      enumTypes,
      complexTypes: [...complexTypes, ...namedTypes()],
      entityTypes,
      functions: attendanceFunctions,
    },
  ],
  container: {
    namespace: serviceNamespace,
    name: 'Container',
    entitySets: serviceSets.map(({ name, entityType }) => ({
      name,
      entityType: `${serviceNamespace}.${entityType}`,
    })),
  },
}
