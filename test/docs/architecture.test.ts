import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'

import { describe, expect, it } from 'vitest'

const text = readFileSync('docs/architecture.md', 'utf8')
const units = readdirSync('src').filter((name) => statSync(`src/${name}`).isDirectory())

/** The files and folders of src that the document names, such as `writes/run`. */
const named = [...text.matchAll(/`(?:src\/)?((?:[a-z0-9]+)(?:\/[a-z0-9.-]+)+)`/g)].flatMap(([, path = '']) =>
  units.includes(path.split('/')[0] ?? '') ? [path] : [],
)

describe('docs/architecture.md', () => {
  it.each([...new Set(named)])('names %s, which exists in src', (path) => {
    const isThere = [`src/${path}`, `src/${path}.ts`].some((file) => existsSync(file))
    expect(isThere).toBe(true)
  })

  it('describes every folder of src, with the folders that it may import', () => {
    const missing = units.filter((unit) => !text.includes(`| \`src/${unit}\``))
    const rules = text.slice(text.indexOf('## Who may import whom'))
    const withoutRule = units.filter((unit) => !new RegExp(`^\\| (?:[a-z]+, )*${unit}[ ,]`, 'm').test(rules))
    expect({ missing, withoutRule }).toEqual({ missing: [], withoutRule: [] })
  })
})
