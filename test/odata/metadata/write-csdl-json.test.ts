import { expect, test } from 'vitest'
import { writeCsdlJson } from '../../../src/odata/metadata/write-csdl-json.ts'
import { small } from './small-model.ts'

test('every kind of declaration is written as CSDL JSON has it', () => {
  expect(JSON.parse(writeCsdlJson(small))).toEqual({
    $Version: '4.0',
    $EntityContainer: 'Main.Container',
    Types: { Flags: { $Kind: 'EnumType', $IsFlags: true, A: 1 } },
    Main: {
      $Alias: 'M',
      Kind: { $Kind: 'EnumType', Plain: 0 },
      Ref: { $Kind: 'ComplexType', Type: { $Nullable: true } },
      Group: {
        $Kind: 'EntityType',
        $Key: ['ID', 'Kind'],
        ID: { $Type: 'Edm.Guid' },
        Kind: { $Type: 'Main.Kind' },
        Amount: { $Type: 'Edm.Decimal', $Nullable: true, $Scale: 'variable' },
        Names: { $Collection: true },
        Groups: { $Kind: 'NavigationProperty', $Collection: true, $Type: 'Main.Group' },
        Parent: { $Kind: 'NavigationProperty', $Type: 'Main.Group' },
        Own: {
          $Kind: 'NavigationProperty',
          $Collection: true,
          $Type: 'Main.Group',
          $ContainsTarget: true,
        },
      },
      Find: [
        {
          $Kind: 'Function',
          $Parameter: [{ $Name: 'a<b' }],
          $ReturnType: { $Type: 'Main.Ref', $Nullable: true },
        },
      ],
      Container: {
        $Kind: 'EntityContainer',
        Groups: {
          $Collection: true,
          $Type: 'Main.Group',
          $NavigationPropertyBinding: { Groups: 'Groups', Parent: 'Groups' },
        },
      },
    },
  })
})
