import type { ServiceModel } from '../../../src/odata/csdl.ts'

const nothing = { enumTypes: [], complexTypes: [], entityTypes: [], functions: [] }

/** A model with a declaration of every kind. */
export const small: ServiceModel = {
  schemas: [
    {
      ...nothing,
      namespace: 'Types',
      enumTypes: [{ name: 'Level', members: [{ name: 'A', value: 1 }] }],
    },
    {
      namespace: 'Main',
      alias: 'M',
      enumTypes: [{ name: 'Kind', members: [{ name: 'Plain', value: 0 }] }],
      complexTypes: [
        {
          name: 'Ref',
          properties: [{ name: 'Type', type: 'Edm.String', collection: false, nullable: true }],
          navigation: [],
        },
      ],
      entityTypes: [
        {
          name: 'Group',
          key: ['ID', 'Kind'],
          properties: [
            { name: 'ID', type: 'Edm.Guid', collection: false, nullable: false },
            { name: 'Kind', type: 'Main.Kind', collection: false, nullable: false },
            { name: 'Amount', type: 'Edm.Decimal', collection: false, nullable: true, scale: 'variable' },
            { name: 'Names', type: 'Edm.String', collection: true, nullable: false },
          ],
          navigation: [
            { name: 'Groups', type: 'Main.Group', collection: true, nullable: false, contained: false },
            { name: 'Parent', type: 'Main.Group', collection: false, nullable: false, contained: false },
            { name: 'Own', type: 'Main.Group', collection: true, nullable: false, contained: true },
          ],
        },
      ],
      functions: [
        {
          name: 'Find',
          bound: false,
          parameters: [{ name: 'a<b', type: 'Edm.String', collection: false, nullable: false }],
          returns: { type: 'Main.Ref', collection: false, nullable: true },
        },
      ],
    },
  ],
  container: {
    namespace: 'Main',
    name: 'Container',
    entitySets: [{ name: 'Groups', entityType: 'Main.Group' }],
  },
}
