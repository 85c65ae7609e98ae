import { existsSync, readFileSync } from 'node:fs'

import { expect, test } from 'vitest'

import { defects } from './defects.ts'

/** Checks that `npm run test:long` can still break the product, which it runs with each of these defects. */
test.each(Object.entries(defects))('the defect %s fits the built product', (_name, changes) => {
  for (const { module, from } of changes) {
    const built = readFileSync(new URL(`../../../dist/${module}`, import.meta.url), 'utf8')
    expect([module, from, built.split(from).length - 1]).toEqual([module, from, 1])
    // A deleted module may still be in `dist`.
    const source = new URL(`../../../src/${module.replace(/\.js$/, '.ts')}`, import.meta.url)
    expect(existsSync(source), module).toBe(true)
  }
})
