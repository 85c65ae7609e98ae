import { type ServiceSet, serviceSets } from '../../model/service-model.ts'
import { lookupSets } from './samples.ts'

/** Whose data the entities of a set are. */
type SetSubject = 'learner' | 'contact' | 'group' | 'lookup'

/** An entity set of the learner domains. */
export interface LearnerSet extends ServiceSet {
  readonly subject: SetSubject
}

/** Those of the other sets are learners. */
const subjects: Readonly<Record<string, SetSubject>> = {
  LearnerGroups: 'group',
  LearnerLookups: 'lookup',
  LearnerSENLookps: 'lookup',
  LearnerContactPersonals: 'contact',
  ContactBasics: 'contact',
  ContactContactDetails: 'contact',
  ContactPersonals: 'contact',
  Contacts: 'contact',
}

/** Every set of the learner domains: those of service.md 1.1, and those that LearnerGroup links to (service.md 2.2). */
export const learnerSets: readonly LearnerSet[] = serviceSets
  .filter(({ securityDomain }) => securityDomain !== 'Attendance')
  .map((set) => ({ ...set, subject: subjects[set.name] ?? 'learner' }))

/** Every permission that a call can need (service.md 1.1 and 1.2). */
export const securityDomains: readonly string[] = [
  ...new Set(serviceSets.map(({ securityDomain }) => securityDomain)),
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
