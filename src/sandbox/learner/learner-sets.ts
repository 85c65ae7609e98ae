import { subDomains } from '../../model/sub-domains.ts'
import { lookupSets } from './samples.ts'

/** Whose data the entities of a set are. */
type SetSubject = 'learner' | 'contact' | 'group' | 'lookup'

/** An entity set of the learner domains. */
export interface LearnerSet {
  readonly name: string
  readonly subject: SetSubject
  /** Spellings that lead to the set besides its name; compared without case. */
  readonly aliases: readonly string[]
  /** The permission a caller needs (service.md 1.1); for sets without a row there, that of the nearest one. */
  readonly securityDomain: string
}

const subjects: Readonly<Record<string, SetSubject>> = { LearnerGroups: 'group', LearnerSENLookps: 'lookup' }

/** Right spellings of sets that the interface misspells. */
const rightSpellings: Readonly<Record<string, string>> = { LearnerSENLookps: 'LearnerSENLookups' }

/** The sets of service.md 1.1, under every spelling that their paths have. */
const documentedSets = subDomains
  .filter(({ securityDomain }) => securityDomain !== 'Attendance')
  .map(({ entitySet, paths, securityDomain }): LearnerSet => {
    const spellings = [...paths.map(({ path }) => path.split('/').at(-1)), rightSpellings[entitySet]]
    const others = spellings.filter((name) => name !== undefined).filter((name) => name !== entitySet)
    const aliases = [...new Set(others)]
    return { name: entitySet, subject: subjects[entitySet] ?? 'learner', aliases, securityDomain }
  })

const set = (name: string, securityDomain: string, subject: SetSubject = 'learner'): LearnerSet => ({
  ...{ name, subject, securityDomain },
  aliases: [],
})

/** Every set of the learner domains: those of service.md 1.1, and those that LearnerGroup links to (service.md 2.2). */
export const learnerSets: readonly LearnerSet[] = [
  ...documentedSets,
  set('LearnerLookups', 'Learner.Indentifier', 'lookup'),
  set('LearnerContactBasics', 'Learner.ContactDetails'),
  set('LearnerContactContactDetails', 'Learner.ContactDetails'),
  set('LearnerContactPersonals', 'Learner.ContactDetails', 'contact'),
  set('LearnerConsents', 'Learner.Personal'),
  set('LearnerSENReviews', 'Learner.SEN.Review'),
  set('LearnerSENEvents', 'Learner.SEN'),
  set('LearnerSENStatements', 'Learner.SEN'),
  set('LearnerEHCPs', 'Learner.SEN.EHCP'),
  set('LearnerPupilPremiumAwards', 'Learner.Grants'),
  set('LearnerSchoolHistorys', 'Learner.Registration'),
  set('LearnerGeneralNotes', 'Learner.Personal'),
  set('ContactBasics', 'Learner.ContactDetails', 'contact'),
  set('ContactContactDetails', 'Learner.ContactDetails', 'contact'),
  set('ContactPersonals', 'Learner.ContactDetails', 'contact'),
  set('Contacts', 'Learner.ContactDetails', 'contact'),
]

/** Every permission that a call can need (service.md 1.1 and 1.2). */
export const securityDomains: readonly string[] = [
  ...new Set([...subDomains, ...learnerSets].map(({ securityDomain }) => securityDomain)),
]

/** The set that a name in a path means, in any case and in any spelling that the interface has. */
export function findLearnerSet(name: string): LearnerSet | undefined {
  const wanted = name.toLowerCase()
  return learnerSets.find((set) =>
    [set.name, ...set.aliases].some((spelling) => spelling.toLowerCase() === wanted),
  )
}

/** The lookup that a LookupType names, in any case, and the set that holds it: `/V1/Lookup/Learner/Ethnicity`. */
export function findLookup(name: string): { readonly set: LearnerSet; readonly type: string } | undefined {
  for (const [setName, types] of Object.entries(lookupSets)) {
    const type = Object.keys(types).find((one) => one.toLowerCase() === name.toLowerCase())
    const set = type === undefined ? undefined : findLearnerSet(setName)
    if (type !== undefined && set !== undefined) return { set, type }
  }
  return undefined
}
