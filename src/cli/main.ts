#!/usr/bin/env node
import { setFlagsFromString } from 'node:v8'

// Nothing of the program may be imported statically: a too old Node could not even load it.
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
if (major < 24 || (major === 24 && minor < 15)) {
  console.error(
    `Markbridge needs Node.js 24.15 or newer; this is ${process.versions.node}.\n` +
      'In a checkout start it through npm (npm start, npm run -s markbridge -- <command>): npm ci has put a fitting Node.js ' +
      'into node_modules. Elsewhere install one from your system or with: npm install --global node@24',
  )
  process.exitCode = 2
} else {
  // While the first batches are under way V8 finds that what a request allocates survives, and from then on puts such objects
  // among the old ones, where they keep alive whatever they refer to: a mark took 41 us of processor time instead of 28.
  setFlagsFromString('--no-allocation-site-pretenuring')
  const { run } = await import('./program.ts')
  process.exitCode = await run(process.argv)
}
export {}
