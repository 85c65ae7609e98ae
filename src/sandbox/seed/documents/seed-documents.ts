import type { DatabaseSync } from 'node:sqlite'
import { servedModel } from '../../served-model.ts'
import type { Identities } from '../../identity.ts'
import { createRandom } from '../../random.ts'
import type { Pupil } from '../pupil.ts'
import { createComposer } from './compose-entity.ts'
import { createContacts, createHome } from './contact.ts'
import { learnerSets } from './entity-sets.ts'
import type { Json } from './field-rules.ts'
import { listedId, lookupOnlyLists, lookupSets, valueLists } from './value-lists.ts'

/** What the documents are made from. */
export interface DocumentSeed {
  readonly seed: number
  readonly ids: Identities
  readonly pupils: readonly Pupil[]
  /** Calendar year of the September in which the school year of the plan began. */
  readonly year: number
}

/** Writes the entities of every learner domain. Each depends on the seed, its set and its learner alone. */
export function seedDocuments(database: DatabaseSync, { seed, ids, pupils, year }: DocumentSeed): void {
  const insert = database.prepare('INSERT INTO entity VALUES (?, ?, ?, ?, NULL)')
  const put = (set: string, learner: number, key: string, body: Record<string, Json>): void => {
    insert.run(set, learner, key, JSON.stringify(body))
  }
  const composer = createComposer(servedModel)
  for (const { name, subject } of learnerSets) {
    const declared = servedModel.container.entitySets.find((set) => set.name === name)
    const type = declared?.entityType.split('.').at(-1) ?? name
    if (subject !== 'learner' && subject !== 'contact') continue
    for (const pupil of pupils) {
      const contacts = createContacts(seed, pupil)
      const random = createRandom(seed, `${name} ${pupil.learner}`)
      const about = { ids, random, pupil, year, home: createHome(seed, pupil), contacts }
      if (subject === 'learner') {
        put(name, pupil.learner, ids.guid('learner', pupil.learner), composer.compose(type, about))
        continue
      }
      for (const contact of contacts)
        put(name, pupil.learner, ids.guid('contact', contact.number), composer.compose(type, about, contact))
    }
  }
  for (const [name, types] of Object.entries(lookupSets)) seedLookups(name, types)

  function seedLookups(set: string, types: Readonly<Record<string, string>>): void {
    for (const [lookupType, list] of Object.entries(types)) {
      const values = valueLists[list] ?? lookupOnlyLists[list] ?? []
      for (const [index, { code, description }] of values.entries()) {
        const externalId = listedId(ids, list, code)
        put(set, 0, `${externalId},${lookupType}`, {
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
        })
      }
    }
  }
}
