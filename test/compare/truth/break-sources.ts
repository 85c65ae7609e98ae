import { registerHooks } from 'node:module'

/** A deliberate change of a module. `from` occurs in the module exactly once. */
export interface Defect {
  /** The path below `src/`. */
  readonly module: string
  readonly from: string
  readonly to: string
}

/** Changes modules of this process while they are loaded. Loading fails if the module no longer contains the text of the defect. */
export function breakSources(defects: readonly Defect[]): void {
  registerHooks({
    load: (url, context, nextLoad) => {
      const loaded = nextLoad(url, context)
      const own = defects.filter(({ module }) => url.endsWith(`/src/${module}`))
      if (own.length === 0) return loaded
      return { ...loaded, source: own.reduce(apply, decode(loaded.source)) }
    },
  })
}

function decode(source: string | ArrayBuffer | NodeJS.TypedArray | undefined): string {
  return typeof source === 'string' ? source : new TextDecoder().decode(source)
}

function apply(source: string, { module, from, to }: Defect): string {
  if (source.split(from).length !== 2) throw new Error(`the defect does not fit ${module}: ${from}`)
  return source.replace(from, () => to)
}
