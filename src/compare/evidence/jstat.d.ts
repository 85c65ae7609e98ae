/** The part of jstat that is used here; the package has no types of its own. */
declare module 'jstat' {
  const jstat: {
    readonly beta: {
      /** The quantile `p` of the beta distribution. */
      readonly inv: (p: number, alpha: number, beta: number) => number
    }
  }
  export = jstat
}
