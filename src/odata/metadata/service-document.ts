import type { ServiceModel } from '../csdl.ts'

/** The service document of OData JSON 4.0, section 5. */
export interface ServiceDocument {
  readonly '@odata.context': string
  readonly value: readonly { readonly name: string; readonly kind: 'EntitySet'; readonly url: string }[]
}

/** Lists the entity sets of a model; `metadataUrl` is the absolute address of its `$metadata`. */
export function toServiceDocument(model: ServiceModel, metadataUrl: string): ServiceDocument {
  return {
    '@odata.context': metadataUrl,
    value: model.container.entitySets.map(({ name }) => ({ name, kind: 'EntitySet', url: name })),
  }
}
