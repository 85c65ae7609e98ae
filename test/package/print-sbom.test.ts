import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

import { expect, test } from 'vitest'
import * as z from 'zod'

const component = z.object({ name: z.string(), group: z.string().optional() })
const sbomSchema = z.object({
  metadata: z.object({ component: component.extend({ version: z.string() }) }),
  components: z.array(component),
})
const manifestSchema = z.object({
  version: z.string(),
  dependencies: z.record(z.string(), z.string()),
  devDependencies: z.record(z.string(), z.string()),
})

test('the bill of materials lists the dependencies, including an indirect one, and no development dependency', () => {
  const own = manifestSchema.parse(JSON.parse(readFileSync('package.json', 'utf8')))
  const printed = execFileSync(process.execPath, ['test/package/print-sbom.ts'], { encoding: 'utf8' })
  const sbom = sbomSchema.parse(JSON.parse(printed))
  expect(sbom.metadata.component).toEqual({ name: 'markbridge', version: own.version })
  const listed = sbom.components.map(({ name, group }) => (group === undefined ? name : `${group}/${name}`))
  expect(listed).toEqual(expect.arrayContaining(Object.keys(own.dependencies)))
  // This indirect dependency is needed by pg, and by the development dependency @types/pg.
  expect(listed).toContain('pg-protocol')
  // @opentelemetry/api is a development dependency, but prom-client needs it too.
  const development = Object.keys(own.devDependencies).filter((name) => name !== '@opentelemetry/api')
  expect(listed.filter((name) => development.includes(name))).toEqual([])
})
