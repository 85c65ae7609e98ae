import { readdirSync, readFileSync } from 'node:fs'

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
})
