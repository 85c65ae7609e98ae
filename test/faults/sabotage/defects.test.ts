import { existsSync, readFileSync } from 'node:fs'

import { expect, test } from 'vitest'

import { defects } from './defects.ts'

/** What `npm run test:long` breaks can still be broken: it runs the product with each of these. */
test.each(Object.entries(defects))('the defect %s fits the built product', (_name, changes) => {
  for (const { module, from } of changes) {
    const built = readFileSync(new URL(`../../../dist/${module}`, import.meta.url), 'utf8')
    expect([module, from, built.split(from).length - 1]).toEqual([module, from, 1])
    // A module that is gone may still lie in `dist`.
    const source = new URL(`../../../src/${module.replace(/\.js$/, '.ts')}`, import.meta.url)
    expect(existsSync(source), module).toBe(true)
  }
})
