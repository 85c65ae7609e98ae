import { existsSync } from 'node:fs'
import { glob, readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'

import { expect, test } from 'vitest'

const root = fileURLToPath(new URL('../../', import.meta.url))
const glossary = await readFile(`${root}docs/glossary.md`, 'utf8')
const words = [...glossary.matchAll(/^\| ([a-z][^|]*?) \|/gm)].map(([, word = '']) => word).slice(1)

/** Returns the files that match the patterns, as paths below the root. */
async function filesOf(patterns: readonly string[]): Promise<string[]> {
  const files: string[] = []
  for await (const file of glob(patterns, { cwd: root })) files.push(file)
  return files.sort()
}

/** Lower-cases a text and separates the words of names that hyphens, underscores or capitals join. */
const plain = (text: string): string =>
  text
    .replaceAll(/([a-z])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .replaceAll(/[-_]/g, ' ')

test('docs/glossary.md is sorted and names each word once', () => {
  expect(words.length).toBeGreaterThan(20)
  expect(words.length).toBeLessThan(45)
  expect(words).toEqual([...new Set(words)].sort((one, other) => one.localeCompare(other, 'en')))
})

test('each word of docs/glossary.md is used in src, docs or the README', async () => {
  const files = await filesOf(['src/**/*.ts', 'docs/**/*.md', 'README.md'])
  const texts = files
    .filter((file) => file !== 'docs/glossary.md')
    .map((file) => readFile(root + file, 'utf8'))
  const used = plain((await Promise.all(texts)).join('\n'))
  expect(words.filter((word) => !used.includes(plain(word)))).toEqual([])
})

/** Returns the anchors that GitHub gives the headings of a file. */
async function anchorsOf(file: string): Promise<string[]> {
  const text = (await readFile(root + file, 'utf8')).replaceAll(/^```[^]*?^```$/gm, '')
  return [...text.matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  )
}

const documents = await filesOf(['*.md', 'docs/**/*.md', 'bench/*.md'])

test.each(documents)('the links in %s lead to files and headings that exist', async (file) => {
  const text = (await readFile(root + file, 'utf8')).replaceAll(/^```[^]*?^```$/gm, '')
  const broken: string[] = []
  for (const [, target = ''] of text.matchAll(/\]\(([^)\s]+)\)/g)) {
    if (/^https?:/.test(target)) continue
    const url = new URL(target, `file:///${file}`)
    const path = url.pathname.slice(1)
    if (!existsSync(root + path)) broken.push(target)
    else if (url.hash !== '' && !(await anchorsOf(path)).includes(url.hash.slice(1))) broken.push(target)
  }
  expect(broken).toEqual([])
})
