import { readdir, readFile } from 'node:fs/promises'

import { expect, test } from 'vitest'

const root = new URL('../../', import.meta.url)
const protocol = await readFile(new URL('docs/protocol.md', root), 'utf8')
const folders = await readdir(new URL('fixtures/', root))

/** Returns the fixtures that docs/protocol.md names for a row or section. */
function namedFor(row: string): string[] {
  const text = /^[FA]\d+$/.test(row)
    ? (new RegExp(`^\\| ${row} \\|.*\\| ([^|]*) \\|$`, 'm').exec(protocol)?.[1] ?? '')
    : (sectionText(row).match(/Fixtures: ([^\n]*)\./)?.[1] ?? '')
  return [...text.matchAll(/`([a-z0-9-]+)`/g)].map(([, name]) => name ?? '').sort()
}

function sectionText(row: string): string {
  const number = row === 'id rule' ? '3' : row.replace('section ', '')
  return protocol.split(/^## /m).find((text) => text.startsWith(`${number}.`)) ?? ''
}

test('every row of docs/protocol.md lists exactly the fixtures that refer to the row', async () => {
  const byRow = new Map<string, string[]>()
  for (const folder of folders) {
    const { rows } = JSON.parse(await readFile(new URL(`fixtures/${folder}/case.json`, root), 'utf8')) as {
      rows: string[]
    }
    for (const row of rows) byRow.set(row, [...(byRow.get(row) ?? []), folder])
  }
  const expected = [...byRow].map(([row, names]) => [row, names.sort()]).sort()
  expect(expected.map(([row]) => [row, namedFor(String(row))])).toEqual(expected)
})

test('every row of docs/protocol.md names a fixture or a test', () => {
  const rows = [...protocol.matchAll(/^\| ([FA]\d+) \|(.*)$/gm)]
  const numbered = (letter: string): string[] =>
    rows.flatMap(([, row = '']) => (row.startsWith(letter) ? [row] : []))
  // The rows are numbered without a gap.
  for (const letter of ['F', 'A'])
    expect(numbered(letter)).toEqual(numbered(letter).map((_, index) => `${letter}${index + 1}`))
  for (const [, row = '', rest = ''] of rows) {
    expect([row, namedFor(row).length > 0 || rest.includes('test/')]).toEqual([row, true])
  }
})
