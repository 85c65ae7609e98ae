import { describe, expect, test } from 'vitest'
import { AdapterError } from '../../../src/errors.ts'
import { createModelIndex } from '../../../src/odata/typed/model-index.ts'
import { sampleIndex, sampleModel } from '../sample-model.ts'

describe('createModelIndex', () => {
  test.each([
    ['Sample.Thing', 'Sample.Thing'],
    ['S.Thing', 'Sample.Thing'],
    ['Thing', 'Sample.Thing'],
    ['S.Kind', 'Sample.Kind'],
    ['Edm.Guid', 'Edm.Guid'],
    ['Guid', undefined],
    ['Other.Thing', undefined],
    ['toString', undefined],
  ])('finds %s', (name, found) => {
    expect(sampleIndex.findType(name)?.name).toBe(found)
  })

  test('does not find a bare name that two schemas declare', () => {
    const [schema] = sampleModel.schemas
    const twice = createModelIndex({
      ...sampleModel,
      schemas: [...sampleModel.schemas, ...(schema ? [{ ...schema, namespace: 'Second', alias: 'T' }] : [])],
    })
    expect(twice.findType('Thing')).toBeUndefined()
    expect(twice.findType('T.Thing')?.name).toBe('Second.Thing')
  })

  test('gives members by name, and only those that are declared', () => {
    const thing = sampleIndex.structured('Sample.Thing')
    expect(thing).toMatchObject({ kind: 'entity', key: ['ID'] })
    expect(thing.properties.get('Owner')?.type).toBe('Sample.Owner')
    expect(thing.navigation.get('Parts')?.contained).toBe(true)
    expect(thing.properties.has('constructor')).toBe(false)
    expect(sampleIndex.structured('Sample.Owner').key).toEqual([])
  })

  test('calls a model that names a type it does not declare a fault of its own', () => {
    expect(() => sampleIndex.structured('Sample.Kind')).toThrow(
      new AdapterError('ADP_INTERNAL', 'The model has no structured type Sample.Kind'),
    )
  })
})
