import { writeFileSync } from 'node:fs'

import { readShippedLock } from './shipped-lock.ts'

// An installation from a registry gets exactly these versions. With the whole lock file npm would also install development dependencies.
writeFileSync('npm-shrinkwrap.json', JSON.stringify(readShippedLock()))
