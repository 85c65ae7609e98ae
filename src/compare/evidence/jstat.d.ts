/** Declares the part of jstat that this project uses, since the package ships no types. */
declare module 'jstat' {
  const jstat: {
    readonly beta: {
      /** Returns the quantile `p` of the beta distribution. */
      readonly inv: (p: number, alpha: number, beta: number) => number
    }
  }
  export = jstat
}
