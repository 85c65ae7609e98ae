import type { PrimitiveType, Property, ServiceModel } from '../../src/odata/csdl.ts'
import { createModelIndex } from '../../src/odata/typed/model-index.ts'

const nullable = (name: string, type: string): Property => ({ name, type, collection: false, nullable: true })
const required = (name: string, type: PrimitiveType): Property => ({
  ...nullable(name, type),
  nullable: false,
})
const strings = (name: string): Property => ({ name, type: 'Edm.String', collection: true, nullable: false })

const enumeration = (name: string, members: Readonly<Record<string, number>>) => ({
  name,
  members: Object.entries(members).map(([member, value]) => ({ name: member, value })),
})
const link = (name: string, type: string, collection: boolean) => ({
  ...{ name, type, collection, nullable: !collection, contained: collection },
})

/** A model with properties of every kind, for tests of checking and compiling. */
export const sampleModel: ServiceModel = {
  schemas: [
    {
      namespace: 'Sample',
      alias: 'S',
      enumTypes: [enumeration('Kind', { Plain: 0, Fancy: 1 }), enumeration('Marks', { Red: 1, Blue: 2 })],
      complexTypes: [
        {
          name: 'Owner',
          properties: [nullable('ExternalID', 'Edm.Guid'), nullable('Type', 'Edm.String'), strings('Names')],
          navigation: [],
        },
      ],
      entityTypes: [
        {
          name: 'Thing',
          key: ['ID'],
          properties: [
            required('ID', 'Edm.Guid'),
            required('Code', 'Edm.String'),
            nullable('Name', 'Edm.String'),
            nullable('Size', 'Edm.Int32'),
            nullable('Weight', 'Edm.Decimal'),
            nullable('Open', 'Edm.Boolean'),
            nullable('Kind', 'Sample.Kind'),
            nullable('Marks', 'Sample.Marks'),
            nullable('Created', 'Edm.DateTimeOffset'),
            nullable('Day', 'Edm.Date'),
            nullable('At', 'Edm.TimeOfDay'),
            nullable('Lasts', 'Edm.Duration'),
            nullable('Hash', 'Edm.Binary'),
            nullable('Owner', 'Sample.Owner'),
            strings('Tags'),
          ],
          navigation: [link('Parts', 'Sample.Part', true), link('Maker', 'Sample.Maker', false)],
        },
        {
          name: 'Part',
          key: ['ID'],
          properties: [
            required('ID', 'Edm.Guid'),
            nullable('Price', 'Edm.Int32'),
            nullable('Name', 'Edm.String'),
          ],
          navigation: [link('Parts', 'Sample.Part', true)],
        },
        {
          name: 'Maker',
          key: ['ID', 'Kind'],
          properties: [
            required('ID', 'Edm.Guid'),
            { ...nullable('Kind', 'Sample.Kind'), nullable: false },
            nullable('Name', 'Edm.String'),
          ],
          navigation: [],
        },
      ],
      functions: [],
    },
  ],
  container: {
    namespace: 'Sample',
    name: 'Container',
    entitySets: [
      { name: 'Things', entityType: 'Sample.Thing' },
      { name: 'Makers', entityType: 'Sample.Maker' },
    ],
  },
}

export const sampleIndex = createModelIndex(sampleModel)
