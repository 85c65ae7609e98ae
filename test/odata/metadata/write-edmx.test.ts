import { describe, expect, test } from 'vitest'
import type { ServiceModel } from '../../../src/odata/csdl.ts'
import { toServiceDocument } from '../../../src/odata/metadata/service-document.ts'
import { writeEdmx } from '../../../src/odata/metadata/write-edmx.ts'
import { sampleModel } from '../sample-model.ts'

const nothing = { enumTypes: [], complexTypes: [], entityTypes: [], functions: [] }

const small: ServiceModel = {
  schemas: [
    {
      ...nothing,
      namespace: 'Types',
      enumTypes: [{ name: 'Flags', flags: true, members: [{ name: 'A', value: 1 }] }],
    },
    {
      namespace: 'Main',
      alias: 'M',
      enumTypes: [{ name: 'Kind', flags: false, members: [{ name: 'Plain', value: 0 }] }],
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

describe('writeEdmx', () => {
  test('writes every kind of declaration', () => {
    expect(writeEdmx(small)).toBe(`<?xml version="1.0" encoding="utf-8"?>
<edmx:Edmx Version="4.0" xmlns:edmx="http://docs.oasis-open.org/odata/ns/edmx">
  <edmx:DataServices>
    <Schema Namespace="Types" xmlns="http://docs.oasis-open.org/odata/ns/edm">
      <EnumType Name="Flags" IsFlags="true">
        <Member Name="A" Value="1"/>
      </EnumType>
    </Schema>
    <Schema Namespace="Main" Alias="M" xmlns="http://docs.oasis-open.org/odata/ns/edm">
      <EnumType Name="Kind">
        <Member Name="Plain" Value="0"/>
      </EnumType>
      <ComplexType Name="Ref">
        <Property Name="Type" Type="Edm.String"/>
      </ComplexType>
      <EntityType Name="Group">
        <Key>
          <PropertyRef Name="ID"/>
          <PropertyRef Name="Kind"/>
        </Key>
        <Property Name="ID" Type="Edm.Guid" Nullable="false"/>
        <Property Name="Kind" Type="Main.Kind" Nullable="false"/>
        <Property Name="Amount" Type="Edm.Decimal" Scale="variable"/>
        <Property Name="Names" Type="Collection(Edm.String)" Nullable="false"/>
        <NavigationProperty Name="Groups" Type="Collection(Main.Group)"/>
        <NavigationProperty Name="Parent" Type="Main.Group" Nullable="false"/>
        <NavigationProperty Name="Own" Type="Collection(Main.Group)" ContainsTarget="true"/>
      </EntityType>
      <Function Name="Find">
        <Parameter Name="a&lt;b" Type="Edm.String" Nullable="false"/>
        <ReturnType Type="Main.Ref"/>
      </Function>
      <EntityContainer Name="Container">
        <EntitySet Name="Groups" EntityType="Main.Group">
          <NavigationPropertyBinding Path="Groups" Target="Groups"/>
          <NavigationPropertyBinding Path="Parent" Target="Groups"/>
        </EntitySet>
      </EntityContainer>
    </Schema>
  </edmx:DataServices>
</edmx:Edmx>
`)
  })

  test('binds no link whose target type has more than one set', () => {
    const entitySets = [...small.container.entitySets, { name: 'Others', entityType: 'Main.Group' }]
    expect(writeEdmx({ ...small, container: { ...small.container, entitySets } })).not.toContain('Binding')
  })
})

test('toServiceDocument lists the entity sets', () => {
  expect(toServiceDocument(sampleModel, 'http://127.0.0.1/$metadata')).toEqual({
    '@odata.context': 'http://127.0.0.1/$metadata',
    value: [
      { name: 'Things', kind: 'EntitySet', url: 'Things' },
      { name: 'Makers', kind: 'EntitySet', url: 'Makers' },
    ],
  })
})
