import { registerHooks } from 'node:module'

/** One change of a module: `from` stands in it once. */
export interface Defect {
  /** Path below `src/`. */
  readonly module: string
  readonly from: string
  readonly to: string
}

/** Breaks modules of this process while they are loaded; one that the defect does not fit any longer is not loaded. */
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
