#!/usr/bin/env node
import { setFlagsFromString } from 'node:v8'

// The program is imported after this check. A static import would make an old Node.js fail before it prints the message.
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
if (major < 24 || (major === 24 && minor < 15)) {
  console.error(
    `Markbridge needs Node.js 24.15 or newer; this is ${process.versions.node}.\n` +
      'In a checkout, start it through npm (npm start, npm run -s markbridge -- <command>): npm ci has installed a suitable ' +
      'Node.js in node_modules. Elsewhere, install one from your system or with: npm install --global node@24',
  )
  process.exitCode = 2
} else {
  // Without this flag, V8 allocates objects like those of the first requests directly in the old generation, where they keep alive all
  // objects to which they refer. A mark then took 41 us of processor time instead of 28 us.
  setFlagsFromString('--no-allocation-site-pretenuring')
  // With this flag, V8 collects the old generation once it has grown by 60 %. By default it waits until it has doubled, and the large
  // short-lived strings of reads then took 25 to 45 MiB more. With 20 %, collections cost too much processor time when writes wait for
  // commits (decision 001).
  setFlagsFromString('--heap-growing-percent=60')
  const { run } = await import('./program.ts')
  process.exitCode = await run(process.argv)
}
export {}
