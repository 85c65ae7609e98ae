import { describe, expect, test } from 'vitest'
import { shareSandbox } from './share-sandbox.ts'
import type { Rows } from './share-sandbox.ts'

const { call, read, list } = shareSandbox()

/** The collections of LearnerGroup (service.md 2.2) with the permission that each requires. */
const members = {
  LearnerIdentifiers: 'Learner.Indentifier',
  LearnerMedicals: 'Learner.Medical',
  LearnerSENs: 'Learner.SEN',
  LearnerDietarys: 'Learner.Dietary',
  LearnerCulturals: 'Learner.Cultural',
  LearnerPersonals: 'Learner.Personal',
  LearnerContactBasics: 'Learner.ContactDetails',
  LearnerContactContactDetails: 'Learner.ContactDetails',
  LearnerContactDetails: 'Learner.ContactDetails',
  LearnerGrants: 'Learner.Grants',
  LearnerWelfares: 'Learner.Welfares',
  LearnerConsents: 'Learner.Personal',
  LearnerSENReviews: 'Learner.SEN.Review',
  LearnerRegistrations: 'Learner.Registration',
  LearnerTransports: 'Learner.Transport',
  LearnerPupilPremiumAwards: 'Learner.Grants',
  LearnerSchoolHistorys: 'Learner.Registration',
  LearnerEHCPs: 'Learner.SEN.EHCP',
  LearnerContactPersonals: 'Learner.ContactDetails',
  LearnerSENEvents: 'Learner.SEN',
  LearnerSENStatements: 'Learner.SEN',
  ContactBasics: 'Learner.ContactDetails',
}

describe('the sandbox, asked for the members of a group (service-facts 15)', () => {
  const groupsOf = (type: string): Promise<Rows> =>
    list(`/Learner/v3/LearnerGroups?$filter=GroupType%20eq%20SIMS.GroupTypeEnum'${type}'`)
  const address = (group: Readonly<Record<string, unknown>> | undefined, type: string): string =>
    `LearnerGroups(ExternalID=${String(group?.['ExternalID'])},GroupType=SIMS.GroupTypeEnum'${type}')`

  test.each([
    ['YearGroup', 'CurrentYearGroup', 'PastoralGroup.Definition.YearGroup'],
    ['PrimaryClass', 'CurrentPrimaryClass', 'PastoralGroup.Definition.PrimaryClass'],
    ['House', 'CurrentHouse', undefined],
  ])(
    'returns for a group of type %s the learners whose %s refers to the group',
    async (type, reference, typeText) => {
      const groups = await groupsOf(type)
      expect(groups).not.toEqual([])
      for (const group of groups) {
        const found = await list(`/Learner/v3/${address(group, type)}/LearnerIdentifiers`)
        const id = String(group['ExternalID'])
        expect(found).toEqual(
          await list(
            `/V3/LearnerIdentifiers?$filter=${reference}/ExternalID%20eq%20${id}%20and%20OnRollState%20eq%20'Current'`,
          ),
        )
        const types = found.map((learner) => (learner[reference] as Record<string, unknown>)['Type'])
        expect(new Set(types).size).toBe(1)
        if (typeText !== undefined) expect(types[0]).toBe(typeText)
      }
    },
  )

  test.each(Object.entries(members))('requires for the path %s the permission %s', async (link, domain) => {
    const [group] = await groupsOf('YearGroup')
    const path = `/Learner/v3/${address(group, 'YearGroup')}`
    const found = await list(`${path}/${link}`)
    const learners = await list(`${path}/LearnerIdentifiers?$select=ExternalID`)
    const aboutLearners = !['LearnerContactPersonals', 'ContactBasics'].includes(link)
    if (aboutLearners)
      expect(found.map(({ ExternalID }) => ExternalID)).toEqual(learners.map(({ ExternalID }) => ExternalID))
    else expect(found.length).toBeGreaterThan(learners.length)
    const { [link]: expanded } = await read(`${path}?$expand=${link}`)
    expect(expanded).toEqual(found)
    for (const query of [`/${link}`, `?$expand=${link}`, `?$expand=*`])
      expect((await call('GET', path + query, `all-but-${domain}`)).status).toBe(403)
  })

  test('answers 404 if the key of the group has no type or another type', async () => {
    const [group] = await groupsOf('YearGroup')
    const id = String(group?.['ExternalID'])
    const keys = [id, `ExternalID=${id}`, `ExternalID=${id},GroupType=SIMS.GroupTypeEnum'House'`]
    for (const key of keys)
      expect((await call('GET', `/Learner/v3/LearnerGroups(${encodeURIComponent(key)})`)).status).toBe(404)
  })
})
