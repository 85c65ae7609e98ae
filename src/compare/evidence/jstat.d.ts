/** The package jstat ships no types. These declarations cover the function that the project uses. */
declare module 'jstat' {
  const jstat: {
    readonly beta: {
      readonly inv: (p: number, alpha: number, beta: number) => number
    }
  }
  export = jstat
}
