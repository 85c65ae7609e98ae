import { registerHooks } from 'node:module'

/** One change of a built module. `from` occurs in the module once. */
interface Defect {
  /** The path below `dist/`. */
  readonly module: string
  readonly from: string
  readonly to: string
}

/** The defects of the built product, by name. `test/simulation/mutants.ts` breaks the other safeguards of the engine. */
export const defects = {
  /**
   * Dates the first 30 batches an hour ahead, like a clock that is set back after them, and never asks the journal for the times of marks.
   */
  'date-backwards': [
    {
      module: 'writes/plan.js',
      from: 'if (markedMs === plan.markedMs)',
      to: 'markedMs += (globalThis.datedBatches = (globalThis.datedBatches ?? 0) + 1) <= 30 ? 3_600_000 : 0; if (markedMs === plan.markedMs)',
    },
    {
      module: 'writes/resolve-unknown.js',
      from: 'await knownMarks(task)',
      to: "{ confirmedAt: () => [], lost: [], newer: 'none' }",
    },
  ],
  /** Stores the writes that V2 serves without the ids of their batches, so that a resend to V3 is not recognised. */
  'forget-v2': [
    {
      module: 'writes/relayed-write.js',
      from: '...(await identityOf(owner, upstream, planned)),',
      to: '...(await identityOf(owner, upstream, planned)), ids: undefined,',
    },
  ],
  /** Accepts any journal as its own: neither its identity nor its high-water mark is compared, and its file is not watched. */
  'trust-any-journal': [
    { module: 'journal/open-store.js', from: 'throw damagedStore(place, damage);', to: 'return;' },
    {
      module: 'journal/sqlite/worker.js',
      from: 'const now = statSync(path, { throwIfNoEntry: false });',
      to: 'return;',
    },
    // Lets the thread with the database inherit the `--import` of this module.
    { module: 'journal/sqlite/store.js', from: 'execArgv: []', to: 'execArgv: process.execArgv' },
  ],
  /** Recognises a mark in a read-back as the posted mark only if the mark has the posted time. */
  'trust-times': [
    {
      module: 'translate/read-back.js',
      from: "{ content: ['same'], then: 'applied' }",
      to: "{ content: ['same'], time: ['exact'], then: 'applied' }, { content: ['same'], then: 'absent' }",
    },
  ],
} satisfies Record<string, readonly Defect[]>

type DefectName = keyof typeof defects

/**
 * Returns the URL of a module that gives the adapter this defect if the adapter starts with `--import` of the module. The adapter does not
 * start if the built product no longer contains the text that the defect replaces.
 */
export function defect(name: DefectName): string {
  return `${new URL(import.meta.url).href}?${name}`
}

const chosen = new URL(import.meta.url).search.slice(1)
if (chosen in defects) {
  const own: readonly Defect[] = defects[chosen as DefectName]
  registerHooks({
    load: (url, context, nextLoad) => {
      const loaded = nextLoad(url, context)
      const here = own.filter(({ module }) => url.endsWith(`/dist/${module}`))
      if (here.length === 0) return loaded
      const source =
        typeof loaded.source === 'string' ? loaded.source : new TextDecoder().decode(loaded.source)
      return { ...loaded, source: here.reduce(apply, source) }
    },
  })
}

function apply(source: string, { module, from, to }: Defect): string {
  if (source.split(from).length !== 2)
    throw new Error(
      `${module} does not contain this text exactly once, so the defect must be changed: ${from}`,
    )
  return source.replace(from, () => to)
}
