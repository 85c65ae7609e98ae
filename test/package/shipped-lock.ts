import { readFileSync } from 'node:fs'

import * as z from 'zod'

const lockSchema = z.looseObject({
  packages: z.record(
    z.string(),
    z.looseObject({ dev: z.boolean().optional(), devOptional: z.boolean().optional() }),
  ),
})

/** Reads package-lock.json without packages that only development needs. */
export function readShippedLock() {
  const lock = lockSchema.parse(
    JSON.parse(readFileSync(new URL('../../package-lock.json', import.meta.url), 'utf8')),
  )
  const shipped = Object.entries(lock.packages).filter(([, { dev, devOptional }]) => !(dev ?? devOptional))
  const packages = Object.fromEntries(
    shipped.map(([path, entry]) => [path, path === '' ? { ...entry, devDependencies: {} } : entry]),
  )
  return { ...lock, packages }
}
