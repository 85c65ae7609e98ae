import { registerHooks } from 'node:module'

import { mutants } from './mutants.ts'

// Loaded before the histories of one mutant. Changes the mutant's module while the module is loaded.

const mutant = mutants.find(({ name }) => name === process.env['MUTANT'])
if (mutant === undefined) throw new Error('there is no such mutant')
const { module, from, to } = mutant

registerHooks({
  load: (url, context, nextLoad) => {
    const loaded = nextLoad(url, context)
    if (!url.endsWith(`/src/${module}`)) return loaded
    const source = typeof loaded.source === 'string' ? loaded.source : new TextDecoder().decode(loaded.source)
    if (source.split(from).length !== 2) throw new Error(`the mutant does not fit ${module}: ${from}`)
    return { ...loaded, source: source.replace(from, () => to) }
  },
})
