import { existsSync, readFileSync } from 'node:fs'

import { expect, test } from 'vitest'

import { defects } from './defects.ts'

/** Checks that `npm run test:long`, which runs the product with each of these defects, can still break the product. */
test.each(Object.entries(defects))(
  'the built product contains the code that the defect %s changes',
  (_name, changes) => {
    for (const { module, from } of changes) {
      const built = readFileSync(new URL(`../../../dist/${module}`, import.meta.url), 'utf8')
      expect([module, from, built.split(from).length - 1]).toEqual([module, from, 1])
      // `dist` may still contain a module whose source was deleted.
      const source = new URL(`../../../src/${module.replace(/\.js$/, '.ts')}`, import.meta.url)
      expect(existsSync(source), module).toBe(true)
    }
  },
)
