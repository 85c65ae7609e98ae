import { type ServiceSet, serviceSets } from '../../model/service-model.ts'
import { lookupSets } from './samples.ts'

type SetSubject = 'learner' | 'contact' | 'group' | 'lookup'

export interface LearnerSet extends ServiceSet {
  readonly subject: SetSubject
}

/** The subjects of the sets. Sets that are not listed contain learners. */
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

/** The sets of the learner domains: the sets of service.md 1.1, and the sets to which LearnerGroup links (service.md 2.2). */
export const learnerSets: readonly LearnerSet[] = serviceSets
  .filter(({ securityDomain }) => securityDomain !== 'Attendance')
  .map((set) => ({ ...set, subject: subjects[set.name] ?? 'learner' }))

/** The permissions that a call can require (service.md 1.1 and 1.2). */
export const securityDomains: readonly string[] = [
  ...new Set(serviceSets.map(({ securityDomain }) => securityDomain)),
]

/** Finds a learner set by any spelling that the service uses, ignoring case. */
export function findLearnerSet(name: string): LearnerSet | undefined {
  const wanted = name.toLowerCase()
  return learnerSets.find((set) =>
    [set.name, ...set.aliases].some((spelling) => spelling.toLowerCase() === wanted),
  )
}

/** Finds a lookup and the set that contains it by its LookupType, ignoring case, as in `/V1/Lookup/Learner/Ethnicity`. */
export function findLookup(name: string): { readonly set: LearnerSet; readonly type: string } | undefined {
  for (const [setName, types] of Object.entries(lookupSets)) {
    const type = Object.keys(types).find((one) => one.toLowerCase() === name.toLowerCase())
    const set = type === undefined ? undefined : findLearnerSet(setName)
    if (type !== undefined && set !== undefined) return { set, type }
  }
  return undefined
}
