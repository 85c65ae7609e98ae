#!/usr/bin/env node
// Nothing but this check may be imported statically: a too old Node could not even load the rest.
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
if (major < 22 || (major === 22 && minor < 19)) {
  console.error(
    `Markbridge needs Node.js 22.19 or newer; this is ${process.versions.node}.\n` +
      'In a checkout start it through npm (npm start, npm run -s markbridge -- <command>): npm ci has put a fitting Node.js ' +
      'into node_modules. Elsewhere install one from your system or with: npm install --global node@24',
  )
  process.exitCode = 2
} else {
  const { run } = await import('./program.ts')
  process.exitCode = await run(process.argv)
}
export {}
