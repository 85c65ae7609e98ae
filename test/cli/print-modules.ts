import { registerHooks } from 'node:module'
import { writeSync } from 'node:fs'

/** Prints the modules that the program has loaded on standard error when it ends. Loaded with `--import`. */
const urls = new Set<string>()
registerHooks({
  load(url, context, next) {
    urls.add(url)
    return next(url, context)
  },
})
process.on('exit', () => writeSync(2, `\nmodules ${JSON.stringify([...urls])}\n`))
