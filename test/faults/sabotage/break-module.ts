import { registerHooks } from 'node:module'

/** One change of a built module: `from` stands in it once. */
export interface Defect {
  /** Path below `dist/`. */
  readonly module: string
  readonly from: string
  readonly to: string
}

/**
 * Breaks the product in this process: its modules are changed while they are loaded. To be called by a module that the program is
 * started with (`--import`). Where a defect does not fit the module any longer, the program does not start.
 */
export function breakModules(defects: readonly Defect[]): void {
  registerHooks({
    load: (url, context, nextLoad) => {
      const loaded = nextLoad(url, context)
      const own = defects.filter(({ module }) => url.endsWith(`/dist/${module}`))
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
