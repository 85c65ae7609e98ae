import { servedModel } from '../../served-model.ts'
import type { Identities } from '../../identity.ts'
import { createRandom } from '../../random.ts'
import type { StoredEntity } from '../../store/entities.ts'
import type { Pupil } from '../pupil.ts'
import { type Composer, createComposer } from './compose-entity.ts'
import { createContacts, createHome } from './contact.ts'
import { learnerSets } from './entity-sets.ts'
import { listedId, lookupOnlyLists, lookupSets, valueLists } from './value-lists.ts'

/** The input of the documents. */
export interface DocumentSeed {
  readonly seed: number
  readonly ids: Identities
  readonly pupils: readonly Pupil[]
  /** Calendar year of the September in which the school year of the plan began. */
  readonly year: number
}

/** Made with the first set: it looks at each property of the model. */
let composer: Composer | undefined
const composerOfModel = (): Composer => (composer ??= createComposer(servedModel))

/**
 * Creates the function that composes the entities of a learner domain's set. Each depends on the seed, its set and its learner
 * alone, so that a set can be made when it is first read: most users of a sandbox read few of them.
 */
export function createSetComposer({
  seed,
  ids,
  pupils,
  year,
}: DocumentSeed): (set: string) => StoredEntity[] {
  const about = (set: string, pupil: Pupil) => ({
    ...{ ids, pupil, year },
    random: createRandom(seed, `${set} ${pupil.learner}`),
    home: createHome(seed, pupil),
    contacts: createContacts(seed, pupil),
  })
  return (set) => {
    const subject = learnerSets.find(({ name }) => name === set)?.subject
    if (subject === 'lookup') return composeLookups(ids, set)
    const declared = servedModel.container.entitySets.find(({ name }) => name === set)
    const type = declared?.entityType.split('.').at(-1) ?? set
    if (subject === 'learner')
      return pupils.map((pupil) => ({
        learner: pupil.learner,
        key: ids.guid('learner', pupil.learner),
        body: JSON.stringify(composerOfModel().compose(type, about(set, pupil))),
      }))
    if (subject !== 'contact') return []
    return pupils.flatMap((pupil) => {
      const family = about(set, pupil)
      return family.contacts.map((contact) => ({
        learner: pupil.learner,
        key: ids.guid('contact', contact.number),
        body: JSON.stringify(composerOfModel().compose(type, family, contact)),
      }))
    })
  }
}

function composeLookups(ids: Identities, set: string): StoredEntity[] {
  return Object.entries(lookupSets[set] ?? {}).flatMap(([lookupType, list]) =>
    (valueLists[list] ?? lookupOnlyLists[list] ?? []).map(({ code, description }, index) => {
      const externalId = listedId(ids, list, code)
      const body = {
        ExternalID: externalId,
        LookupType: lookupType,
        ResourceProvider: {
          ExternalID: listedId(ids, 'ResourceProviderRef', 'DFE'),
          Code: 'DFE',
          Description: 'Department for Education',
        },
        Code: code,
        Description: description,
        DisplayOrder: index + 1,
        IsVisible: true,
      }
      return { learner: 0, key: `${externalId},${lookupType}`, body: JSON.stringify(body) }
    }),
  )
}
