import { describe, expect, test } from 'vitest'

import { serviceModel } from '../../src/model/service-model.ts'
import { subDomains } from '../../src/model/sub-domains.ts'
import { checkQuery } from '../../src/odata/check/check-query.ts'
import { parseExpand } from '../../src/odata/parse/parse-query.ts'
import { createModelIndex } from '../../src/odata/typed/model-index.ts'

describe('the table of sub domains', () => {
  test('has the rows of service.md 1.1 and 1.2', () => {
    const rows = subDomains.map(({ name, paths, securityDomain, methods, availability, specialCategory }) =>
      [
        name,
        paths[0]?.path,
        securityDomain,
        methods.join('+'),
        availability,
        specialCategory ? 'special' : '',
      ].join(' | '),
    )
    expect(rows).toEqual([
      'Learner Identifiers | /V3/LearnerIdentifiers | Learner.Indentifier | GET | available | ',
      'Learner Personal | /V3/LearnerPersonals | Learner.Personal | GET+PATCH | available | ',
      'Learner Cultural | /V3/LearnerCulturals | Learner.Cultural | GET | available | special',
      'Learner Registration | /V3/LearnerRegistrations | Learner.Registration | GET | unavailable | ',
      'Learner Groups | /Learner/v3/LearnerGroups | Learner.Groups | GET | available | ',
      'Learner Medical | /V3/LearnerMedicals | Learner.Medical | GET | announced | special',
      'Learner Dietary | /V3/LearnerDietarys | Learner.Dietary | GET | available | special',
      'Learner Transport | /V3/LearnerTransports | Learner.Transport | GET | available | ',
      'Learner Welfare | /V1/LearnerWelfares | Learner.Welfares | GET | unavailable | special',
      'Learner Grants | /V1/LearnerGrants | Learner.Grants | GET | available | special',
      'Learner Contact Details | /V1/LearnerContactDetails | Learner.ContactDetails | GET | available | special',
      'Learner SEN | /Learner/V3/LearnerSENs | Learner.SEN | GET | available | special',
      'Learner SEN Lookups | /Learner/V3/LearnerSENLookps | Learner.SEN | GET | available | ',
      'Attendance | /Attendance/V3/AttendanceRecords | Attendance | GET+POST | available | ',
    ])
  })

  test('has the expand lists of service.md 1.1', () => {
    const lists = subDomains.flatMap(({ paths }) =>
      paths
        .filter(({ path, expand }) => expand.length > 0 && !path.startsWith('/Learner'))
        .map(({ path, expand }) => [path, expand.join(',')]),
    )
    expect(lists).toEqual([
      ['/V3/LearnerRegistrations', 'Enrolments($expand=EnrolmentStatuses)'],
      ['/V2/LearnerRegistations', 'Enrolments,BoarderStatuses,PartTimeRecords,UPNHistory'],
      [
        '/V3/LearnerMedicals',
        'MedicalConditions,Disabilities,MedicalEvents,MedicalNotes,LearnerParamedicalSupports,MedicalProviders',
      ],
      [
        '/V3/LearnerDietarys',
        'FreeMealEligibilityPeriods,FreeSchoolMilkEligibilityPeriods,MealPatterns,DietaryNeeds',
      ],
      ['/V1/LearnerWelfares', 'ChildProtectionPlans,IncareDetails,PersonalEducationPlans'],
      ['/V1/LearnerGrants', 'ChildProtectionPlans,IncareDetails,PersonalEducationPlans'],
      ['/V1/LearnerContactDetails', 'Addresses,Telephones,Emails,LearnerContactRelationships'],
    ])
  })

  test('names the further security domains of SEN', () => {
    const further = subDomains.filter(({ furtherSecurityDomains }) => furtherSecurityDomains.length > 0)
    expect(further.map(({ name, furtherSecurityDomains }) => [name, furtherSecurityDomains])).toEqual([
      ['Learner SEN', ['Learner.SEN.Review', 'Learner.SEN.EHCP']],
    ])
  })

  test('also has the address forms of service-facts 13', () => {
    expect(subDomains[0]?.paths.map(({ path }) => path)).toEqual([
      '/V3/LearnerIdentifiers',
      '/Learner/V3/LearnerIdentifiers',
      '/Learner/odata/V3/LearnerIdentifiers',
    ])
  })

  test('names sets of the model whose types have what the lists expand', () => {
    const index = createModelIndex(serviceModel)
    for (const { name, entitySet, paths } of subDomains) {
      const type = index.entitySets.get(entitySet)?.entityType
      expect(type, name).toBeDefined()
      // The list that service.md gives for Grants is that of Welfare.
      if (type === undefined || name === 'Learner Grants') continue
      for (const { expand } of paths) {
        const options = expand.length === 0 ? {} : { expand: parseExpand(expand.join(', ')) }
        expect(checkQuery(options, type, index).expand).toHaveLength(expand.length)
      }
    }
  })
})
