import { describe, expect, test } from 'vitest'

import { parseFilter, parseKey, parseResourcePath } from '../../../src/odata/parse/parse-query.ts'
import { faultOf } from '../fault.ts'
import { outline } from '../outline.ts'

const guid = '01234567-89ab-cdef-0123-456789abcdef'

describe('parseFilter, for paths', () => {
  test.each([
    ['CurrentYearGroup/ExternalID', 'CurrentYearGroup/ExternalID'],
    ['$it/Name', '$it/Name'],
    ['$this', '$this'],
    ['$root/Sets(1)/Name', '$root/Sets/[=Int32:1]/Name'],
    ['@p1', 'alias:p1'],
    ['@p1/Name', 'alias:p1/Name'],
    ['@Core.Messages/any()', '@Core.Messages/any{}'],
    ['Price/@Measures.Currency#Q', 'Price/@Measures.Currency#Q'],
    ['NS.Type/Name', '<NS.Type>/Name'],
    ['Address/NS.Type', 'Address/<NS.Type>'],
    ['Items/$count', 'Items/$count{}'],
    ['Items/$count($filter=a eq 1)', 'Items/$count{(eq a Int32:1)}'],
    ['Items/$filter(a eq 1)/$count', 'Items/$filter{(eq a Int32:1)}/$count{}'],
    ["Items/$filter(a eq 1)(ID='x')/Name", "Items/$filter{(eq a Int32:1)}/[ID='x']/Name"],
    ['Items/any()', 'Items/any{}'],
    ['Items/any(i:i/Price gt 1)', 'Items/any{i: (gt variable:i/Price Int32:1)}'],
    ['Items/ALL( i : i )', 'Items/all{i: variable:i}'],
    ['a/any(i:i/b/all(j:i/c eq j/d))', 'a/any{i: variable:i/b/all{j: (eq variable:i/c variable:j/d)}}'],
    ['a/any(i:true) and i', '(and a/any{i: Boolean:true} i)'],
    ['a/any(length:length)', 'a/any{length: variable:length}'],
    [`Items(${guid})`, `Items/[=Guid:${guid}]`],
    [`Items(A=1,B=K'X',C=@c)`, 'Items/[A=Int32:1 B=K:X C=@c]'],
    ['Items( A = 1 )', 'Items/[A=Int32:1]'],
    ['NS.Find(Name=Other)', 'NS.Find{Name=Other}'],
    ['NS.Find(Name=1)', 'NS.Find{Name=Int32:1}'],
    ['Find(Name=Other/Name)', 'Find{Name=Other/Name}'],
    ['Find()/Name', 'Find{}/Name'],
    ['a/NS.Find()/b', 'a/NS.Find{}/b'],
  ])('parses the path %s', (text, expected) => {
    expect(outline(parseFilter(text))).toBe(expected)
  })

  test.each([
    ['NS.Type', 7, 'Expected "/"'],
    ['a/', 2, 'Expected a property, "any", "all" or "$count"'],
    ['any(x:true)', 3, 'A collection must precede any and all'],
    ['a/all()', 6, 'Expected a lambda variable'],
    ['a/any(x)', 7, 'Expected ":"'],
    ['a/$count($top=1)', 9, 'Expected $filter='],
    ['a/$count($filter=b;$filter=c)', 18, 'Expected ")"'],
    ['$other', 0, 'Expected $it, $this or $root/'],
    ['$root', 0, 'Expected $it, $this or $root/'],
    ['a(b)', 2, 'Expected a literal as key'],
    ['a(null)', 2, 'Expected a literal as key'],
    ['a(b=1', 5, 'Expected ")"'],
    ['a/@', 3, 'Expected an annotation term'],
    ['a/$filter(b)()', 12, 'Only a name can be called'],
  ])('rejects the path %s at character %i', (text, position, message) => {
    expect(faultOf(() => parseFilter(text))).toEqual({ message, position })
  })
})

describe('parseKey', () => {
  test('parses a single value and named values', () => {
    expect(parseKey(`(${guid})`)).toEqual([
      { value: { kind: 'literal', type: 'Edm.Guid', value: guid, position: 1 }, position: 1 },
    ])
    expect(parseKey(`(ExternalID=@id, GroupType = SIMS.GroupTypeEnum'House')`)).toEqual([
      { name: 'ExternalID', value: { kind: 'alias', name: 'id', position: 12 }, position: 1 },
      {
        name: 'GroupType',
        value: { kind: 'enum', typeName: 'SIMS.GroupTypeEnum', members: ['House'], position: 29 },
        position: 17,
      },
    ])
  })

  test.each([
    ['', 0, 'Expected "("'],
    ['()', 1, 'Expected a literal as key'],
    ['(null)', 1, 'Expected a literal as key'],
    ['(1,2)', 2, 'Expected ")"'],
    ['(A=1,2)', 5, 'Expected a parameter or key name'],
    ['(1)x', 3, 'Expected the end of the key'],
    ['(A=b)', 1, 'Expected a literal as key'],
  ])('rejects the key %j at character %i', (text, position, message) => {
    expect(faultOf(() => parseKey(text))).toEqual({ message, position })
  })
})

describe('parseResourcePath', () => {
  test('parses sets, keys, navigation and bound functions', () => {
    const path = (text: string) => parseResourcePath(text).map((segment) => segment.kind)
    expect(path(`AttendanceRecords(${guid})`)).toEqual(['property', 'key'])
    expect(
      path(`LearnerGroups(ExternalID=${guid},GroupType=SIMS.GroupTypeEnum'House')/LearnerIdentifiers/$count`),
    ).toEqual(['property', 'key', 'property', '$count'])
    expect(parseResourcePath('Records/SIMS.Changes(startDate=2024-09-03T00:00:00Z)')[1]).toMatchObject({
      kind: 'function',
      name: 'SIMS.Changes',
      parameters: [{ name: 'startDate', value: { type: 'Edm.DateTimeOffset' } }],
    })
  })

  test.each([
    ['', 0],
    ['/A', 0],
    ['A//B', 2],
    ['A(', 2],
    ['A B', 2],
  ])('rejects the resource path %j at character %i', (text, position) => {
    expect(faultOf(() => parseResourcePath(text)).position).toBe(position)
  })
})
