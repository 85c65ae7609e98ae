import type { PrimitiveType, Property, ServiceModel } from '../../src/odata/csdl.ts'
import { createModelIndex } from '../../src/odata/typed/model-index.ts'

const nullable = (name: string, type: string): Property => ({ name, type, collection: false, nullable: true })
const required = (name: string, type: PrimitiveType): Property => ({
  ...nullable(name, type),
  nullable: false,
})
const strings = (name: string): Property => ({ name, type: 'Edm.String', collection: true, nullable: false })

/** A model with a property of every kind, for tests of checking and compiling. */
export const sampleModel: ServiceModel = {
  schemas: [
    {
      namespace: 'Sample',
      alias: 'S',
      enumTypes: [
        {
          name: 'Kind',
          flags: false,
          members: [
            { name: 'Plain', value: 0 },
            { name: 'Fancy', value: 1 },
          ],
        },
        {
          name: 'Marks',
          flags: true,
          members: [
            { name: 'Red', value: 1 },
            { name: 'Blue', value: 2 },
          ],
        },
      ],
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
          navigation: [
            { name: 'Parts', type: 'Sample.Part', collection: true, nullable: false, contained: true },
            { name: 'Maker', type: 'Sample.Maker', collection: false, nullable: true, contained: false },
          ],
        },
        {
          name: 'Part',
          key: ['ID'],
          properties: [
            required('ID', 'Edm.Guid'),
            nullable('Price', 'Edm.Int32'),
            nullable('Name', 'Edm.String'),
          ],
          navigation: [
            { name: 'Parts', type: 'Sample.Part', collection: true, nullable: false, contained: true },
          ],
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
      functions: [
        {
          name: 'Changes',
          bound: true,
          parameters: [
            { name: 'bindingParameter', type: 'Sample.Thing', collection: true, nullable: false },
            { name: 'since', type: 'Edm.DateTimeOffset', collection: false, nullable: false },
          ],
          returns: { type: 'Sample.Thing', collection: true, nullable: false },
        },
      ],
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
