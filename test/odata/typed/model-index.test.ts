import { describe, expect, test } from 'vitest'
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
  ])('resolves the type name %s to %s', (name, found) => {
    expect(sampleIndex.findType(name)?.name).toBe(found)
  })

  test('finds no type by a name without a namespace if two schemas declare the name', () => {
    const [schema] = sampleModel.schemas
    const twice = createModelIndex({
      ...sampleModel,
      schemas: [...sampleModel.schemas, ...(schema ? [{ ...schema, namespace: 'Second', alias: 'T' }] : [])],
    })
    expect(twice.findType('Thing')).toBeUndefined()
    expect(twice.findType('T.Thing')?.name).toBe('Second.Thing')
  })
})
