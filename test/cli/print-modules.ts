import { registerHooks } from 'node:module'
import { writeSync } from 'node:fs'

/** Prints the loaded modules on standard error when the program ends. The program loads this module with `--import`. */
const urls = new Set<string>()
registerHooks({
  load(url, context, next) {
    urls.add(url)
    return next(url, context)
  },
})
process.on('exit', () => writeSync(2, `\nmodules ${JSON.stringify([...urls])}\n`))
