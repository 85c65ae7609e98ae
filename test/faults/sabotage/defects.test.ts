import { existsSync, readdirSync, readFileSync } from 'node:fs'

import { expect, test, vi } from 'vitest'

import type { Defect } from './break-module.ts'

const names = readdirSync(new URL('defects/', import.meta.url))

/** What `npm run test:long` breaks can still be broken: it runs the product with each of these. */
test.each(names)('the defect %s fits the built product', async (name) => {
  const defects: Defect[] = []
  vi.doMock('./break-module.ts', () => ({
    breakModules: (own: readonly Defect[]) => void defects.push(...own),
  }))
  await import(`./defects/${name}`)
  const timesIn = ({ module, from }: Defect): number =>
    readFileSync(new URL(`../../../dist/${module}`, import.meta.url), 'utf8').split(from).length - 1
  expect(defects.map((defect) => [defect.from, timesIn(defect)])).toEqual(
    defects.map(({ from }) => [from, 1]),
  )
  expect(defects).not.toEqual([])
  // A module that is gone may still lie in `dist`.
  const source = ({ module }: Defect): URL =>
    new URL(`../../../src/${module.replace(/\.js$/, '.ts')}`, import.meta.url)
  expect(defects.filter((defect) => !existsSync(source(defect)))).toEqual([])
})
