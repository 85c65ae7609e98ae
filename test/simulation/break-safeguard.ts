import { registerHooks } from 'node:module'

import { mutants } from './mutants.ts'

// This file is loaded into the processes that run one mutant. The file changes the mutant's module while Node.js loads the module.

const mutant = mutants.find(({ name }) => name === process.env['MUTANT'])
if (mutant === undefined) throw new Error('`mutants.ts` has no mutant with the name in MUTANT.')
const { module, from, to } = mutant

registerHooks({
  load: (url, context, nextLoad) => {
    const loaded = nextLoad(url, context)
    if (!url.endsWith(`/src/${module}`)) return loaded
    const source = typeof loaded.source === 'string' ? loaded.source : new TextDecoder().decode(loaded.source)
    if (source.split(from).length !== 2)
      throw new Error(
        `${module} does not contain this text exactly once, so the mutant must be changed: ${from}`,
      )
    return { ...loaded, source: source.replace(from, () => to) }
  },
})
