import { registerHooks } from 'node:module'
import { writeSync } from 'node:fs'

/** Loaded with `--import`: prints at the end, on standard error, which modules the program has loaded. */
const urls = new Set<string>()
registerHooks({
  load(url, context, next) {
    urls.add(url)
    return next(url, context)
  },
})
process.on('exit', () => writeSync(2, `\nmodules ${JSON.stringify([...urls])}\n`))
