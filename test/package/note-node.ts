// `npm ci` runs this file. The file prints one line if the Node.js of npm is older than package.json requires. npm itself would print a
// warning for each package. .npmrc switches these warnings off, because the scripts run on the newer Node.js of the package `node`.
import { readFileSync } from 'node:fs'

interface Manifest {
  readonly engines: { readonly node: string }
}
const { engines } = JSON.parse(
  readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
) as Manifest
const partsOf = (text: string): readonly number[] => (text.match(/\d+/g) ?? []).map(Number)
const [major = 0, minor = 0] = partsOf(engines.node)
const [, used = ''] = /\bnode\/(\S+)/.exec(process.env['npm_config_user_agent'] ?? '') ?? []
const [ownMajor = Infinity, ownMinor = 0] = partsOf(used)
if (ownMajor < major || (ownMajor === major && ownMinor < minor))
  console.log(
    `Node.js ${used} is older than ${major}.${minor}. The npm scripts of this folder use Node.js ${process.version}, which was installed with the other packages.`,
  )
