import { writeFileSync } from 'node:fs'

import { readShippedLock } from './shipped-lock.ts'

// An installation from a registry gets exactly these versions. npm would also install what is for development.
writeFileSync('npm-shrinkwrap.json', JSON.stringify(readShippedLock()))
