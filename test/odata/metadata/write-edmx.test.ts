import { describe, expect, test } from 'vitest'

import { toServiceDocument, writeEdmx } from '../../../src/odata/metadata/write-edmx.ts'
import { sampleModel } from '../sample-model.ts'
import { small } from './small-model.ts'

describe('writeEdmx', () => {
  test('writes every kind of declaration', () => {
    expect(writeEdmx(small)).toBe(`<?xml version="1.0" encoding="utf-8"?>
<edmx:Edmx Version="4.0" xmlns:edmx="http://docs.oasis-open.org/odata/ns/edmx">
  <edmx:DataServices>
    <Schema Namespace="Types" xmlns="http://docs.oasis-open.org/odata/ns/edm">
      <EnumType Name="Level">
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

  test('writes no binding for a navigation property if several entity sets have the same target type', () => {
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
